"""Runs several verbs in one process, each in a thread with an event loop of its own (ADA_PROCESSES=few).

    python -m cli.shared_process 'courier telegram' 'courier vk'

A verb that ends is started again after a pause, as the supervisor starts a process again; one that ends for good ends
alone. Each reports to the supervisor how it does. Each verb opens its own connections and keeps its own leases, as in a
process of its own. What they share is the memory of the libraries, the interpreter, and the end of the process:
docs/decisions/0149.

Exit codes: 0 after a request to stop, else the highest one of the verbs.
"""

import logging
import signal
import sys
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Event, Thread

from cli.command import FAILURE, SUCCESS
from cli.main import main
from cli.processes.parts import OWN_THREAD, PartTracker
from cli.processes.startup import request_stop
from cli.processes.supervisor import FINAL_EXIT_CODES, announce, describe_exit, report_part

log = logging.getLogger(__name__)

_REQUEST = None
"""In the queue of ended verbs: a request to stop."""

Ended = SimpleQueue["SharedVerb | None"]


class SharedVerb(Thread):
    """Runs one verb, again and again, until it ends for good or `stopping` is set; then puts itself into `ended`."""

    def __init__(self, words: str, stopping: Event, ended: Ended) -> None:
        super().__init__(name=words, daemon=True)
        self.code = SUCCESS
        self._stopping = stopping
        self._ended = ended

    def run(self) -> None:
        part = PartTracker(self.name)
        OWN_THREAD.set(part)
        while True:
            part.starts()
            report_part(part.part)
            self.code = self._run_once()
            if self._stopping.is_set() or self.code in FINAL_EXIT_CODES:
                break
            delay = part.ends(describe_exit(self.code))
            report_part(part.part)
            print_line(f"{self.name} ended ({describe_exit(self.code)}), restarts in {delay} s")
            self._stopping.wait(delay)
        if not self._stopping.is_set():
            print_line(f"{self.name} stopped for good ({describe_exit(self.code)})")
            announce()  # so that `./ada up` does not wait for it
            part.stops(describe_exit(self.code))
            report_part(part.part)
        self._ended.put(self)

    def _run_once(self) -> int:
        try:
            return main(self.name.split())
        except Exception:  # a fault of one verb ends no other
            log.exception("%s failed", self.name)
            return FAILURE


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def run_together(verbs: Sequence[str]) -> int:
    """Run the verbs until a signal, or until all have ended for good; return the exit code. A second signal ends the
    process at once, and so does the first for verbs that have not begun their work.
    """
    stopping, ended = Event(), Ended()

    def request(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        ended.put(_REQUEST)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, request)
    threads = [SharedVerb(words, stopping, ended) for words in verbs]
    for thread in threads:
        thread.start()
    running = set(threads)
    while running:
        one = ended.get()
        if one is _REQUEST:
            stopping.set()
            running = {thread for thread in running if request_stop(thread)}
        else:
            running.discard(one)
    return SUCCESS if stopping.is_set() else max(thread.code for thread in threads)


if __name__ == "__main__":
    sys.exit(run_together(sys.argv[1:]))
