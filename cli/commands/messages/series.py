"""The verb series: messages that are sent again and again."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from cli.client.format_history import format_series
from cli.client.http_client import HttpClient, items, quoted
from cli.client.local_times import in_zone, read_times, zone_of
from cli.client.verbs import over_http, print_result, print_stream
from cli.command import Command
from cli.commands.messages.deliveries import unfilled_marks, warn


def declare_series(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("series", metavar="ID", nargs="?", help="one series; without it all are listed")
    add("--every", metavar="TIMES", help="change its times, for example 'every Monday 8:00'")
    add("--zone", help="change the time zone of its times")
    add("--last", metavar="TIME", help="send nothing after this time")
    add("--text", help="change its text")
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument("--stop", action="store_true", help="send nothing more")
    ends.add_argument("--go-on", action="store_true", help="go on after a stop")
    ends.add_argument("--remove", action="store_true", help="stop it and remove it; what it has sent stays")


async def series(api: HttpClient, arguments: Namespace) -> int:
    """List the series, or show, change, stop or remove one."""
    zone = await zone_of(api, arguments)
    await read_times(api, arguments, "last")
    if not arguments.series:
        listed = items(api, "/v1/series", "series", {})
        return await print_stream(arguments, listed, lambda one: format_series(in_zone(one, zone)))
    path = f"/v1/series/{quoted(arguments.series)}"
    if arguments.remove:
        await api.call("DELETE", path)
        return print_result(arguments, {"removed": arguments.series}, f"removed {arguments.series}")
    changes = await series_changes(api, path, arguments)
    found = await (api.call("PATCH", path, changes) if changes else api.call("GET", path))
    warn(unfilled_marks(found))
    return print_result(arguments, found, format_series(in_zone(found, zone)))


async def series_changes(api: HttpClient, path: str, arguments: Namespace) -> dict[str, Any]:
    given = {"when": arguments.every, "zone": arguments.zone, "until": arguments.last}
    changes = {name: value for name, value in given.items() if value is not None}
    if arguments.text is not None:
        changes["message"] = {**(await api.call("GET", path))["message"], "text": arguments.text}
    if arguments.stop or arguments.go_on:
        changes["state"] = "stopped" if arguments.stop else "active"
    return changes


COMMANDS: Mapping[str, Command] = {"series": Command(declare_series, over_http(series))}
