"""The verbs about one delivery: send, track, show, cancel, reschedule. They call a running Ada over HTTP."""

import asyncio
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from cli.client import format_history as report
from cli.client.http_client import Answer, Api, opened
from cli.client.recipient_arguments import person, recipient
from cli.command import GOOD, NO, WRONG_USAGE, Command, NotDone
from cli.settings.settings import load
from core.model.history_key import HistoryKey

Verb = Callable[[Api, Namespace], Awaitable[int]]

MANY = ("sender", "user", "lane", "kind-prefix", "tag")


def over_http(verb: Verb) -> Callable[[Namespace], int]:
    """A verb that needs the API, as the command line wants it."""

    async def connected(arguments: Namespace) -> int:
        async with opened(load().settings) as api:
            return await verb(api, arguments)

    return lambda arguments: asyncio.run(connected(arguments))


def declare_send(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--to", action="append", required=True, help="7, 7=telegram:100001,sms:+7…, telegram:100001, group:NAME; repeat"
    )
    add("--text", required=True, help="what to say; - reads it from standard input")
    add("--channel", action="append", help="only through this channel; repeat for several")
    add("--at", metavar="TIME", help="when, as in 2026-11-21T17:00:00+03:00; at once without it")
    add("--expires", metavar="TIME", help="not after this moment")
    add("--strategy", choices=["all", "first"], help="every channel, or one after the other until one works")
    add("--sender", default="ada", metavar="ID", help="who sends")
    add("--lane", help="deliveries of one lane go strictly one after the other")
    add("--priority", type=int, help="lower goes first")
    add("--tag", action="append", help="a word to find or cancel it by; repeat")
    add("--repeat-key", metavar="KEY", default="", help="the same key sends once, however often it is called")
    add("--wait", action="store_true", help="stay until it is finished, as track does")


async def send(api: Api, arguments: Namespace) -> int:
    accepted = await api.call("POST", "/v1/deliveries", order(arguments), repeat=arguments.repeat_key)
    if arguments.wait:
        return await follow(api, accepted["id"], arguments.json)
    show_answer(accepted, arguments.json, f"{accepted['id']}  {accepted['state']} for {accepted['deliver_at']}")
    return GOOD


def order(arguments: Namespace) -> dict[str, Any]:
    """What the API wants, without what was not said."""
    said = {
        "sender": {"id": person(arguments.sender)},
        "text": sys.stdin.read() if arguments.text == "-" else arguments.text,
        "recipients": [recipient(one) for one in arguments.to],
        "origin": "cli",
        "channels": arguments.channel,
        "deliver_at": arguments.at,
        "expires_at": arguments.expires,
        "strategy": arguments.strategy,
        "lane": arguments.lane,
        "priority": arguments.priority,
        "tags": arguments.tag,
    }
    return {name: value for name, value in said.items() if value is not None}


def declare_key(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the delivery's id, or its history key")


def path_of(key: str) -> str:
    """Both forms of the key lead to the same delivery. Raises Invalid."""
    return f"/v1/deliveries/{quote(HistoryKey.parse(key).id, safe='')}"


async def track(api: Api, arguments: Namespace) -> int:
    return await follow(api, arguments.key, arguments.json)


async def follow(api: Api, key: str, as_json: bool) -> int:
    """Shows every change as it comes; good if the delivery's end says that everybody was reached."""
    async for event in api.events(f"{path_of(key)}/events"):
        print(
            json.dumps(event.data, ensure_ascii=False) if as_json else report.change(event.name, event.data), flush=True
        )
    history = await api.call("GET", path_of(key))
    show_answer(history, as_json, "\n" + report.whole(history))
    return GOOD if history["verdict"] == "all_reached" else NO


async def show(api: Api, arguments: Namespace) -> int:
    history = await api.call("GET", path_of(arguments.key))
    show_answer(history, arguments.json, report.whole(history))
    return GOOD


def declare_cancel(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", nargs="?", help="one delivery; or else one of --sender, --user …")
    parser.add_argument("--recipient", action="append", metavar="ID", help="of that delivery only these; repeat")
    for name in MANY:
        parser.add_argument(f"--{name}", help=f"all deliveries of this {name}")


async def cancel(api: Api, arguments: Namespace) -> int:
    """Good if anything was cancelled."""
    if arguments.key:
        recipients = [("recipient", one) for one in arguments.recipient or []]
        answer = await api.call("DELETE", with_query(path_of(arguments.key), recipients))
    else:
        answer = await api.call("POST", "/v1/cancellations", selection(arguments))
    sent = answer.get("already_sent")
    late = f"; already sent to {', '.join(str(one) for one in sent)}" if sent else ""
    show_answer(answer, arguments.json, f"cancelled {answer['cancelled']}{late}")
    return GOOD if answer["cancelled"] else NO


def with_query(path: str, pairs: list[tuple[str, str]]) -> str:
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs)
    return f"{path}?{query}" if query else path


def selection(arguments: Namespace) -> dict[str, Any]:
    named = {name.replace("-", "_"): getattr(arguments, name.replace("-", "_")) for name in MANY}
    chosen = {name: value for name, value in named.items() if value is not None}
    if len(chosen) != 1:
        raise NotDone(f"cancel needs a KEY, or exactly one of {', '.join(f'--{name}' for name in MANY)}", WRONG_USAGE)
    return {name: person(value) if name in ("sender", "user") else value for name, value in chosen.items()}


def declare_reschedule(parser: ArgumentParser) -> None:
    declare_key(parser)
    parser.add_argument("--at", required=True, metavar="TIME", help="the new moment, as in 2026-11-21T17:00:00+03:00")


async def reschedule(api: Api, arguments: Namespace) -> int:
    answer = await api.call("PATCH", path_of(arguments.key), {"deliver_at": arguments.at})
    show_answer(answer, arguments.json, f"{answer['id']}  {answer['state']} for {answer['deliver_at']}")
    return GOOD


def show_answer(answer: Answer, as_json: bool, text: str) -> None:
    print(json.dumps(answer, ensure_ascii=False) if as_json else text, flush=True)


COMMANDS: Mapping[str, Command] = {
    "send": Command(declare_send, over_http(send)),
    "track": Command(declare_key, over_http(track)),
    "show": Command(declare_key, over_http(show)),
    "cancel": Command(declare_cancel, over_http(cancel)),
    "reschedule": Command(declare_reschedule, over_http(reschedule)),
}
