"""The actions show, drive and drop of the verb scenarios: what became of each action of a run, over HTTP."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from urllib.parse import quote

from cli.client.http_client import HttpClient, JsonObject
from cli.command import SUCCESS
from cli.commands.bots.run_lines import action_lines, folded, text_lines
from cli.commands.messages.deliveries import over_http


def declare_show(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the id of a run, as in GET /v1/runs and in the log")


async def show(api: HttpClient, arguments: Namespace) -> int:
    """Print a run; `drive` and `drop` change it first."""
    verb = "" if arguments.action == "show" else f":{arguments.action}"
    run = await api.call("POST" if verb else "GET", f"/v1/runs/{quote(arguments.run, safe='')}{verb}")
    print(json.dumps(run, ensure_ascii=False) if arguments.json else "\n".join(lines(run)))
    return SUCCESS


show_run = over_http(show)


def lines(run: JsonObject) -> Iterator[str]:
    """Emit the run as a person reads it: for each action what became of it, its message or its fields, and its
    results."""
    ended = f", over at {run['ended']}" if run["ended"] else ""
    yield from folded(f"{run['id']}  {run['person']}  {run['state']}  began at {run['began']}{ended}", "")
    if text := run["event"].get("event_text") or run["event"].get("callback_data"):
        yield from text_lines(str(text), mark="«")
    for action in run["actions"]:
        at = (action["ended_at"] or action["moved_at"] or "").removeprefix(run["began"][: len("2026-11-23T")])
        waits = f"; waits for {action['waits_for']}" if action["waits_for"] else ""
        place = f"{action['scenario']}: {action['type']}"
        head = f"{action['n']:>3}. {action['state']:<9} {place} ({action['why']}{waits}) {at}".rstrip()
        yield from action_lines(head, action["send"], action["given"], action["results"])
