"""The verb figures: what happened in the last hour or week. It calls a running Ada over HTTP."""

import asyncio
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from cli.client.http_client import JsonObject, open_client
from cli.command import SUCCESS, Command
from cli.settings.settings import load

_HOUR_STEP, _WEEK_STEP = 300, 21_600
_NOT_REACHED = ("failed", "unknown", "expired")
_WIDTHS = (12, 6, 12, 6, 6, 8, 8, 9, 9)
_TITLES = ("until", "sent", "not reached", "done", "new", "ready", "taken", "oldest", "late")


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--week", action="store_true", help="the last week; without it the last hour")
    parser.add_argument("--tube", help="only of this tube, and of the channel of this name")
    parser.add_argument("--step", type=int, metavar="SECONDS", help="seconds in a line, from 10 to 86400")


def run(arguments: Namespace) -> int:
    return asyncio.run(show(arguments))


async def show(arguments: Namespace) -> int:
    """Print a line for each step, then what did not arrive by channel and reason."""
    step = arguments.step or (_WEEK_STEP if arguments.week else _HOUR_STEP)
    query = {"step": str(step), **({"tube": arguments.tube} if arguments.tube else {})}
    client = await open_client(load().settings)
    found = await client.call("GET", "/v1/figures", query=query)
    print(json.dumps(found, ensure_ascii=False) if arguments.json else describe(found))
    return SUCCESS


def describe(found: JsonObject) -> str:
    """Return the figures as a table of 80 columns. A line without numbers follows a gap in the record."""
    if len(found["points"]) < 2:
        return "Nothing is recorded yet."
    lines = [_line(_TITLES), *(_line(_cells(point)) for point in found["points"][1:])]
    failed = [one for one in found["outcomes"] if one["status"] in _NOT_REACHED]
    return "\n".join([*lines, *_failures(failed)])


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:>{width - 1}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()


def _cells(point: JsonObject) -> Sequence[str]:
    at = datetime.fromtimestamp(point["at"] / 1000).astimezone().strftime("%m-%d %H:%M")
    flow = point["flow"] or {}
    counts = [str(flow[name]) if flow else "-" for name in ("sent", "not_reached", "done", "put")]
    late = flow.get("lag_ms")
    oldest = f"{point['oldest_ms'] / 1000:.0f} s"
    return at, *counts, str(point["ready"] + point["locked"]), str(point["taken"]), oldest, _late(late)


def _late(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.0f} ms"


def _failures(failed: Sequence[JsonObject]) -> Iterator[str]:
    if failed:
        yield "\nDid not arrive:"
    for one in failed:
        yield f"{one['count']:>8}  {one['channel']}  {one['status']}  {one['reason']}".rstrip()


COMMANDS: Mapping[str, Command] = {"figures": Command(declare, run)}
