"""The action show of the verb scenarios: what became of each action of a run, from a running Ada over HTTP."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from urllib.parse import quote

from cli.client.http_client import HttpClient, JsonObject
from cli.command import SUCCESS
from cli.commands.messages.deliveries import over_http


def declare_show(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the id of a run, as in GET /v1/runs and in the log")


async def show(api: HttpClient, arguments: Namespace) -> int:
    run = await api.call("GET", f"/v1/runs/{quote(arguments.run, safe='')}")
    print(json.dumps(run, ensure_ascii=False) if arguments.json else "\n".join(lines(run)))
    return SUCCESS


show_run = over_http(show)


def lines(run: JsonObject) -> Iterator[str]:
    """The run as a person reads it: one line for each action, its error or what it waits for behind it."""
    ended = f", over at {run['ended']}" if run["ended"] else ""
    yield f"{run['id']}  {run['person']}  {run['state']}  began at {run['began']}{ended}"
    for action in run["actions"]:
        at = action["ended_at"] or action["moved_at"] or ""
        waits = f"; waits for {action['waits_for']}" if action["waits_for"] else ""
        place = f"{action['scenario']}: {action['type']}"
        yield f"{action['n']:>3}. {action['state']:<9} {place} ({action['why']}{waits}) {at}".rstrip()
