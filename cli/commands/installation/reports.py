"""The verbs figures, costs and actions: what happened in the last hour or week, what was sent and is paid, and what was
changed for others. They call a running Ada over HTTP.
"""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo

from cli.client.http_client import HttpClient, JsonObject, items
from cli.client.local_times import format_span, in_zone, zone_of
from cli.client.verbs import over_http, print_result, print_stream
from cli.command import SUCCESS, Command

_HOUR_STEP, _WEEK_STEP = 300, 21_600
_NOT_REACHED = ("failed", "unknown", "expired")
_FIGURES_WIDTHS = (12, 6, 12, 6, 6, 8, 8, 9, 9)
_FIGURES_TITLES = ("until", "sent", "not reached", "done", "new", "ready", "taken", "oldest", "late")


def declare_figures(parser: ArgumentParser) -> None:
    parser.add_argument("--week", action="store_true", help="the last week; without it the last hour")
    parser.add_argument("--tube", help="only of this tube, and of the channel of this name")
    parser.add_argument("--step", type=int, metavar="SECONDS", help="seconds in a line, from 10 to 86400")


async def show_figures(api: HttpClient, arguments: Namespace) -> int:
    """Print a line for each step, then what did not arrive by channel and reason."""
    step = arguments.step or (_WEEK_STEP if arguments.week else _HOUR_STEP)
    query = {"step": str(step), **({"tube": arguments.tube} if arguments.tube else {})}
    found = await api.call("GET", "/v1/figures", query=query)
    return print_result(arguments, found, describe_figures(found, await zone_of(api, arguments)))


def describe_figures(found: JsonObject, zone: tzinfo) -> str:
    """Return the figures as a table of 80 columns. A line without numbers follows a gap in the record."""
    if len(found["points"]) < 2:
        return "Nothing is recorded yet."
    lines = [_figures_line(_FIGURES_TITLES), *(_figures_line(_cells(point, zone)) for point in found["points"][1:])]
    failed = [one for one in found["outcomes"] if one["status"] in _NOT_REACHED]
    return "\n".join([*lines, *_failures(failed)])


def _figures_line(cells: Sequence[str]) -> str:
    return " ".join(f"{cell:>{width - 1}}" for cell, width in zip(cells, _FIGURES_WIDTHS, strict=True)).rstrip()


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


_COSTS_WIDTHS = (8, 14, 28, 9, 6)
_COSTS_TITLES = ("month", "channel", "sender", "messages", "parts", "sum")


def declare_costs(parser: ArgumentParser) -> None:
    parser.add_argument("--from", dest="first", metavar="MONTH", help="the first month, for example 2026-01")
    parser.add_argument("--until", dest="last", metavar="MONTH", help="the last month; default: this one, of UTC")
    parser.add_argument("--senders", action="store_true", help="a line for each sender; without it for each channel")


async def show_costs(api: HttpClient, arguments: Namespace) -> int:
    """Print a line for each channel of a month, or for each sender in it."""
    months = (("from", arguments.first), ("until", arguments.last))
    query = {name: value for name, value in months if value}
    if arguments.senders:
        costs = [one async for one in items(api, "/v1/costs", "costs", query)]
    else:
        costs = (await api.call("GET", "/v1/costs", query=query | {"limit": "1"}))["totals"]
    if arguments.json:
        print("\n".join(json.dumps(one, ensure_ascii=False) for one in costs))
    else:
        print("\n".join(describe_costs(costs)) if costs else "Nothing was sent in these months.")
    return SUCCESS


def describe_costs(costs: Sequence[JsonObject]) -> Iterator[str]:
    """Emit the lines of a table of 80 columns."""
    yield _costs_line(_COSTS_TITLES)
    for one in costs:
        sender = one.get("name") or one.get("sender") or "all"
        unpriced = [f"{one['unpriced']} parts without a price"] if one["unpriced"] else []
        paid = "; ".join([*one["sums"], *unpriced]) or "-"
        parts = str(one["parts"] or "-")
        yield _costs_line(
            (one["month"], one["channel"], str(sender)[: _COSTS_WIDTHS[2] - 1], str(one["messages"]), parts, paid)
        )


def _costs_line(cells: Sequence[str]) -> str:
    fixed = [f"{cell:<{width}}" for cell, width in zip(cells, _COSTS_WIDTHS, strict=False)]
    return "".join([*fixed, cells[-1]]).rstrip()


def declare_actions(parser: ArgumentParser) -> None:
    parser.add_argument("--who", help="of this key, by its id, or of person:ID")
    parser.add_argument("--what", help='what begins with this, for example "DELETE" or "POST /v1/queue"')
    parser.add_argument("--since", help="from this time on, for example 2026-11-23T00:00:00Z")
    parser.add_argument("--limit", type=int, default=100, help="how many, default 100")


async def list_actions(api: HttpClient, arguments: Namespace) -> int:
    """Print one line per action."""
    query = {name: value for name in ("who", "what", "since") if (value := getattr(arguments, name))}
    zone, found = await zone_of(api, arguments), items(api, "/v1/actions", "actions", query, arguments.limit)
    return await print_stream(arguments, found, lambda one: describe_action(in_zone(one, zone)))


def describe_action(action: JsonObject) -> str:
    times = f" ({action['count']})" if action["count"] != 1 else ""
    why = f": {action['why']}" if action["why"] else ""
    method = action["what"].partition(" ")[0]
    return f"{action['at']}  {action['name']} ({action['via']})  {method} {action['target']}{times}{why}"


COMMANDS: Mapping[str, Command] = {
    "figures": Command(declare_figures, over_http(show_figures)),
    "costs": Command(declare_costs, over_http(show_costs)),
    "actions": Command(declare_actions, over_http(list_actions)),
}
