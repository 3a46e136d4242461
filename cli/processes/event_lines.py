"""Prints the lines of a running `./ada up`: one line for each event, with its time and the process."""

import json
import re
import time
from dataclasses import dataclass

from cli.processes.supervisor import READY_LINE

LOGGED = re.compile(r"\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d) ")
"""The begin of a line that a child has logged."""


@dataclass
class EventLines:
    """Prints a line of a process. For people, that it is ready is news only once Ada `is_up`: the summary says it."""

    as_json: bool
    is_up: bool = False

    def __call__(self, process: str, line: str) -> None:
        if self.as_json:
            print(json.dumps({"part": process, "line": line}, ensure_ascii=False), flush=True)
        elif self.is_up or line != READY_LINE:
            print_text_line(process, line)


def print_text_line(process: str, line: str) -> None:
    """Print the time in front of every line, without the date that a child's line has."""
    logged = LOGGED.match(line)
    moment = logged[1] if logged else time.strftime("%H:%M:%S")
    print(f"{moment} {process:>12} | {line.removeprefix(logged[0] if logged else 'ada: ')}", flush=True)
