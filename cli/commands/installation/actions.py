"""The verb actions: lists what was changed for others, newest first. It calls a running Ada over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.http_client import HttpClient, JsonObject, items
from cli.client.local_times import in_zone, zone_of
from cli.client.verbs import over_http, print_stream
from cli.command import Command


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--who", help="of this key, by its id, or of person:ID")
    parser.add_argument("--what", help='what begins with this, for example "DELETE" or "POST /v1/queue"')
    parser.add_argument("--since", help="from this time on, for example 2026-11-23T00:00:00Z")
    parser.add_argument("--limit", type=int, default=100, help="how many, default 100")


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    """Print one line per action."""
    query = {name: value for name in ("who", "what", "since") if (value := getattr(arguments, name))}
    zone, found = await zone_of(api, arguments), items(api, "/v1/actions", "actions", query, arguments.limit)
    return await print_stream(arguments, found, lambda one: describe(in_zone(one, zone)))


def describe(action: JsonObject) -> str:
    times = f" ({action['count']})" if action["count"] != 1 else ""
    why = f": {action['why']}" if action["why"] else ""
    method = action["what"].partition(" ")[0]
    return f"{action['at']}  {action['name']} ({action['via']})  {method} {action['target']}{times}{why}"


COMMANDS: Mapping[str, Command] = {"actions": Command(declare, over_http(list_all))}
