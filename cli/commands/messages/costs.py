"""The verb costs: what was sent and is paid, by month, channel and sender. It calls a running Ada over HTTP."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence

from cli.client.http_client import HttpClient, JsonObject, items
from cli.client.verbs import over_http
from cli.command import SUCCESS, Command

_WIDTHS = (8, 14, 28, 9, 6)
_TITLES = ("month", "channel", "sender", "messages", "parts", "sum")


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--from", dest="first", metavar="MONTH", help="the first month, for example 2026-01")
    parser.add_argument("--until", dest="last", metavar="MONTH", help="the last month; default: this one, of UTC")
    parser.add_argument("--senders", action="store_true", help="a line for each sender; without it for each channel")


async def show(api: HttpClient, arguments: Namespace) -> int:
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
        print("\n".join(describe(costs)) if costs else "Nothing was sent in these months.")
    return SUCCESS


def describe(costs: Sequence[JsonObject]) -> Iterator[str]:
    """Emit the lines of a table of 80 columns."""
    yield _line(_TITLES)
    for one in costs:
        sender = one.get("name") or one.get("sender") or "all"
        unpriced = [f"{one['unpriced']} parts without a price"] if one["unpriced"] else []
        paid = "; ".join([*one["sums"], *unpriced]) or "-"
        parts = str(one["parts"] or "-")
        yield _line((one["month"], one["channel"], str(sender)[: _WIDTHS[2] - 1], str(one["messages"]), parts, paid))


def _line(cells: Sequence[str]) -> str:
    fixed = [f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=False)]
    return "".join([*fixed, cells[-1]]).rstrip()


COMMANDS: Mapping[str, Command] = {"costs": Command(declare, over_http(show))}
