"""The verb figures: what happened in the last hour or week. It calls a running Ada over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo

from cli.client.http_client import HttpClient, JsonObject
from cli.client.local_times import format_span, zone_of
from cli.client.verbs import over_http, print_result
from cli.command import Command

_HOUR_STEP, _WEEK_STEP = 300, 21_600
_NOT_REACHED = ("failed", "unknown", "expired")
_WIDTHS = (12, 6, 12, 6, 6, 8, 8, 9, 9)
_TITLES = ("until", "sent", "not reached", "done", "new", "ready", "taken", "oldest", "late")


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--week", action="store_true", help="the last week; without it the last hour")
    parser.add_argument("--tube", help="only of this tube, and of the channel of this name")
    parser.add_argument("--step", type=int, metavar="SECONDS", help="seconds in a line, from 10 to 86400")


async def show(api: HttpClient, arguments: Namespace) -> int:
    """Print a line for each step, then what did not arrive by channel and reason."""
    step = arguments.step or (_WEEK_STEP if arguments.week else _HOUR_STEP)
    query = {"step": str(step), **({"tube": arguments.tube} if arguments.tube else {})}
    found = await api.call("GET", "/v1/figures", query=query)
    return print_result(arguments, found, describe(found, await zone_of(api, arguments)))


def describe(found: JsonObject, zone: tzinfo) -> str:
    """Return the figures as a table of 80 columns. A line without numbers follows a gap in the record."""
    if len(found["points"]) < 2:
        return "Nothing is recorded yet."
    lines = [_line(_TITLES), *(_line(_cells(point, zone)) for point in found["points"][1:])]
    failed = [one for one in found["outcomes"] if one["status"] in _NOT_REACHED]
    return "\n".join([*lines, *_failures(failed)])


def _line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:>{width - 1}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()


def _cells(point: JsonObject, zone: tzinfo) -> Sequence[str]:
    at = datetime.fromtimestamp(point["at"] / 1000, zone).strftime("%m-%d %H:%M")
    flow = point["flow"] or {}
    counts = [str(flow[name]) if flow else "-" for name in ("sent", "not_reached", "done", "put")]
    late = "-" if flow.get("lag_ms") is None else format_span(flow["lag_ms"])
    waits = str(point["ready"] + point["locked"])
    return at, *counts, waits, str(point["taken"]), format_span(point["oldest_ms"]), late


def _failures(failed: Sequence[JsonObject]) -> Iterator[str]:
    if failed:
        yield "\nDid not arrive:"
    for one in failed:
        yield f"{one['count']:>8}  {one['channel']}  {one['status']}  {one['reason']}".rstrip()


COMMANDS: Mapping[str, Command] = {"figures": Command(declare, over_http(show))}
