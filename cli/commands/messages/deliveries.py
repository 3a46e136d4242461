"""The verbs of messages: send, track, show, cancel, reschedule, answers, series. They call a running Ada over HTTP."""

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import tzinfo
from typing import Any
from urllib.parse import urlencode

from cli.client.format_history import (
    format_answers,
    format_event,
    format_exchanges,
    format_history,
    format_preview,
    format_series,
    format_uninformed,
)
from cli.client.format_matters import format_remedy, stops
from cli.client.http_client import HttpClient, JsonObject, items, quoted
from cli.client.local_times import TIMES, in_zone, read_times, zone_of
from cli.client.verbs import over_http, parse_id, print_result, print_stream
from cli.command import FAILURE, SUCCESS, WRONG_USAGE, Command, CommandFailed
from cli.commands.messages.new_delivery import (
    asks,
    attach,
    declare_send,
    new_delivery,
    refuse_terms,
    terms_of_question,
    upload_table,
)
from core.errors import SetupError
from core.model.history_key import HistoryKey
from core.model.text.text_parts import sms_parts
from core.redis.cancel_and_wait import cancel_and_wait
from couriers.channel import channels_in_sms

Verb = Callable[[HttpClient, Namespace], Awaitable[int]]

_LOOKS_EVERY = 5.0
"""Seconds between two looks at what keeps a message waiting."""

FILTERS = ("sender", "user", "lane", "kind-prefix", "tag")


async def send(api: HttpClient, arguments: Namespace) -> int:
    await read_times(api, arguments, "at", "expires", "until", "last")
    body = await body_of(api, arguments)
    if arguments.preview:
        seen = await api.call("POST", "/v1/deliveries/preview", body)
        warn(unfilled_marks(seen), empty_office(seen))
        return print_result(arguments, seen, format_preview(in_zone(seen, await zone_of(api, arguments))))
    if arguments.every:
        return await repeat(api, body, arguments)
    accepted = await api.call("POST", "/v1/deliveries", body, idempotency_key=arguments.repeat_key)
    no_one = "no recipient has a contact in one of the channels and wants messages, so it reaches no one"
    history = await api.call("GET", delivery_path(accepted["id"]), query={"limit": "1"})
    reaches = history["verdict"] != "nobody_to_reach"
    warn("" if reaches else no_one, unfilled_marks(accepted), empty_office(accepted), sms_in_parts(history))
    shown = format_accepted(in_zone(accepted, await zone_of(api, arguments)))
    if arguments.wait:
        if not arguments.json:
            print(shown, flush=True)
        return await follow(api, accepted["id"], arguments)
    return print_result(arguments, accepted, shown)


def warn(*warnings: str) -> None:
    """Print those that are not empty."""
    for warning in filter(None, warnings):
        print(f"ada: warning: {warning}", file=sys.stderr)


async def body_of(api: HttpClient, arguments: Namespace) -> dict[str, Any]:
    """Return the request body; its files are uploaded. Raises CommandFailed."""
    body = new_delivery(arguments)
    if arguments.follow_up:
        body |= await follow_up_of(api, arguments)
    if arguments.table:
        given = {"sheet": arguments.sheet, "encoding": arguments.encoding}
        table = {"table": await upload_table(api, arguments.table), **{k: v for k, v in given.items() if v}}
        body["recipients"] = [*body["recipients"], table]
    if arguments.file:
        body["content"] = {"attachments": [await attach(api, one) for one in arguments.file]}
    return body


async def repeat(api: HttpClient, body: dict[str, Any], arguments: Namespace) -> int:
    """Make a series of the delivery."""
    given = {"when": arguments.every, "zone": arguments.zone, "until": arguments.last}
    new = {"message": body, **{name: value for name, value in given.items() if value is not None}}
    made = await api.call("POST", "/v1/series", new, idempotency_key=arguments.repeat_key)
    warn(unfilled_marks(made), empty_office(made))
    return print_result(arguments, made, format_series(in_zone(made, await zone_of(api, arguments))))


async def follow_up_of(api: HttpClient, arguments: Namespace) -> dict[str, Any]:
    """Return the recipients of a follow-up, and what was not given: the question of the first delivery and, without a
    text, its text and content. Raises Invalid, CommandFailed.
    """
    of = {"of": arguments.of} if arguments.of else {}
    recipients = {"recipients": [{"follow_up": HistoryKey.parse(arguments.follow_up).id, **of}]}
    first = await api.call("GET", delivery_path(arguments.follow_up), query={"limit": "1"})
    again = recipients | _asked_again(first.get("answer"), arguments)
    if arguments.text is not None:
        return again
    content = {"content": first["content"]} if first.get("content") and not arguments.file else {}
    texts = {"texts": first["texts"]} if first.get("texts") and not arguments.text_in else {}
    return {**again, "text": first["text"], "personal": "personal" in first, **texts, **content}


def _asked_again(question: JsonObject | None, arguments: Namespace) -> dict[str, Any]:
    """Return the question of the first delivery with the terms that are given, without its closing, and without
    consent: a follow-up is about no children. Nothing if another question is given. Raises CommandFailed.
    """
    if asks(arguments):
        return {}
    terms = terms_of_question(arguments)
    if question is None:
        refuse_terms(terms)
        return {}
    of_the_first = ("until", "locale", "consent")
    return {"answer": {name: value for name, value in question.items() if name not in of_the_first} | terms}


def format_accepted(accepted: JsonObject) -> str:
    moved = f", moved from {accepted['moved_from']}" if accepted["moved_from"] else ""
    line = f"{accepted['id']}  {accepted['state']} for {accepted['deliver_at']}{moved}"
    return "\n".join([line, *map(format_uninformed, accepted.get("uninformed", ()))])


def sms_in_parts(history: Mapping[str, Any]) -> str:
    """Return a warning that each SMS has several parts; "" if it has one, or nobody gets an SMS."""
    parts, recipients = sms_parts(history["text"]), history["counts"]["recipients"]
    counts = [history["channels"][name] for name in channels_in_sms() if name in history["channels"]]
    if parts < 2 or all(one.get("no_contact", 0) + one.get("skipped", 0) >= recipients for one in counts):
        return ""
    return f"an SMS of this text has {parts} parts, and each part is paid; --preview shows that before"


def unfilled_marks(accepted: JsonObject) -> str:
    """Return a warning that marks of the text are sent as they are written; "" if none is."""
    if not (marks := accepted.get("unfilled")):
        return ""
    verb = "is" if len(marks) == 1 else "are"
    return f"{', '.join(marks)} {verb} sent as written; --personal puts a value of each recipient in place"


def empty_office(accepted: JsonObject) -> str:
    """Return a warning that no person reads the replies; "" if one does."""
    return "the office has no members, so replies are read only over HTTP" if accepted.get("empty_office") else ""


def declare_key(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the delivery's id, or its history key")


def delivery_path(key: str) -> str:
    """Return the path of a delivery, from its id or its history key. Raises Invalid."""
    return f"/v1/deliveries/{quoted(HistoryKey.parse(key).id)}"


async def track(api: HttpClient, arguments: Namespace) -> int:
    return await follow(api, arguments.key, arguments)


async def follow(api: HttpClient, key: str, arguments: Namespace) -> int:
    """Print every event as it arrives, and on stderr what keeps the message waiting. Exit code 0 if all recipients were
    reached.
    """
    zone = await zone_of(api, arguments)
    async with obstacles_shown(api, key, zone):
        async for event in api.events(f"{delivery_path(key)}/events"):
            print_result(arguments, event.data, format_event(event.name, in_zone(event.data, zone)))
    history = await api.call("GET", delivery_path(key))
    print_result(arguments, history, "\n" + format_history(in_zone(history, zone)))
    return SUCCESS if history["verdict"] == "all_reached" else FAILURE


@asynccontextmanager
async def obstacles_shown(api: HttpClient, key: str, zone: tzinfo) -> AsyncIterator[None]:
    """Warn, until the block is left, of what keeps messages of the channels of a delivery waiting."""
    counts = (await api.call("GET", delivery_path(key), query={"limit": "1"}))["channels"]
    waiting = frozenset(name for name, one in counts.items() if one.get("queued") or one.get("sending"))
    showing = asyncio.create_task(_show_obstacles(api, waiting, zone))
    try:
        yield
    finally:
        await cancel_and_wait(showing)


async def _show_obstacles(api: HttpClient, channels: frozenset[str], zone: tzinfo) -> None:
    """Warn of each obstacle once. A key that may not read the overview gets no warnings."""
    shown = set[tuple[str, str]]()
    with suppress(CommandFailed, SetupError):
        while True:
            for matter in (await api.call("GET", "/v1/overview"))["matters"]:
                what = matter["kind"], matter.get("subject", "")
                if stops(matter, channels) and what not in shown:
                    shown.add(what)
                    warn(format_remedy(matter, zone))
            await asyncio.sleep(_LOOKS_EVERY)


def declare_show(parser: ArgumentParser) -> None:
    declare_key(parser)
    parser.add_argument(
        "--exchange",
        metavar="ID",
        help="what the providers said about this recipient in the last seven days, call by call",
    )


async def show(api: HttpClient, arguments: Namespace) -> int:
    zone = await zone_of(api, arguments)
    if arguments.exchange:
        path = f"{delivery_path(arguments.key)}/exchanges"
        found = await api.call("GET", path, query={"recipient": arguments.exchange})
        return print_result(arguments, found, format_exchanges(in_zone(found["exchanges"], zone)))
    history = await api.call("GET", delivery_path(arguments.key))
    return print_result(arguments, history, format_history(in_zone(history, zone)))


def declare_cancel(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", nargs="?", help="the delivery; without it one of --sender, --user, …")
    parser.add_argument(
        "--recipient",
        action="append",
        metavar="ID",
        help="cancel only this recipient of the delivery, by its id or an address; repeat for several",
    )
    for name in FILTERS:
        parser.add_argument(f"--{name}", help=f"all deliveries of this {name}")


async def cancel(api: HttpClient, arguments: Namespace) -> int:
    """Exit code 0 if anything was cancelled."""
    if arguments.key:
        result = await api.call("DELETE", delivery_path(arguments.key) + recipients_query(arguments.recipient or []))
    else:
        result = await api.call("POST", "/v1/cancellations", delivery_filter(arguments))
    sent = result.get("already_sent")
    already_sent = f"; already sent to {', '.join(str(recipient) for recipient in sent)}" if sent else ""
    print_result(arguments, result, f"cancelled {result['cancelled']}{already_sent}")
    return SUCCESS if result["cancelled"] else FAILURE


def recipients_query(recipients: list[str]) -> str:
    return f"?{urlencode([('recipient', recipient) for recipient in recipients])}" if recipients else ""


def delivery_filter(arguments: Namespace) -> dict[str, Any]:
    names = [name.replace("-", "_") for name in FILTERS]
    chosen = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    if len(chosen) != 1:
        raise CommandFailed(
            f"cancel needs a KEY, or exactly one of {', '.join(f'--{name}' for name in FILTERS)}", WRONG_USAGE
        )
    return {name: parse_id(value) if name in ("sender", "user") else value for name, value in chosen.items()}


def declare_reschedule(parser: ArgumentParser) -> None:
    declare_key(parser)
    parser.add_argument("--at", required=True, metavar="TIME", help=f"the new time: {TIMES}")
    parser.add_argument("--far", action="store_true", help="the time may be more than a year ahead")


async def reschedule(api: HttpClient, arguments: Namespace) -> int:
    await read_times(api, arguments, "at")
    result = await api.call("PATCH", delivery_path(arguments.key), {"deliver_at": arguments.at, "far": arguments.far})
    return print_result(arguments, result, format_accepted(in_zone(result, await zone_of(api, arguments))))


def declare_answers(parser: ArgumentParser) -> None:
    declare_key(parser)
    parser.add_argument("--csv", action="store_true", help="print a table of CSV")
    parser.add_argument("--state", help="only recipients in this state: open, answered, silent, unreachable, late, …")
    parser.add_argument("--close", action="store_true", help="close the question first: later answers are late")
    parser.add_argument("--reopen", action="store_true", help="open a closed question again first")
    parser.add_argument("--until", metavar="TIME", help="with --reopen: when the question closes")
    parser.add_argument("--remind", action="store_true", help="first remind those who have not answered")


async def answers(api: HttpClient, arguments: Namespace) -> int:
    await read_times(api, arguments, "until")
    path, query = f"{delivery_path(arguments.key)}/answers", {"state": arguments.state} if arguments.state else {}
    if arguments.close:
        await api.call("POST", f"{path}:close")
    if arguments.reopen:
        await api.call("POST", f"{path}:reopen", {"until": arguments.until})
    elif arguments.until:
        raise CommandFailed("--until belongs to --reopen", WRONG_USAGE)
    if arguments.remind:
        reminded = await api.call("POST", f"{path}:remind")
        why = [reminded["detail"]] if "detail" in reminded else []
        print("\n".join([f"reminded: {reminded['people']}", *why]), file=sys.stderr)
    if arguments.csv:
        async for chunk in api.download(f"{path}.csv", query):
            sys.stdout.buffer.write(chunk)
        return SUCCESS
    found = await api.call("GET", path, query={**query, "limit": "1000"})
    cursor = found["next"]
    while cursor:
        page = await api.call("GET", path, query={**query, "limit": "1000", "cursor": cursor})
        found["recipients"] += page["recipients"]
        cursor = found["next"] = page["next"]
    return print_result(arguments, found, format_answers(in_zone(found, await zone_of(api, arguments))))


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


async def run_series(api: HttpClient, arguments: Namespace) -> int:
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
    warn(unfilled_marks(found), empty_office(found))
    return print_result(arguments, found, format_series(in_zone(found, zone)))


async def series_changes(api: HttpClient, path: str, arguments: Namespace) -> dict[str, Any]:
    given = {"when": arguments.every, "zone": arguments.zone, "until": arguments.last}
    changes = {name: value for name, value in given.items() if value is not None}
    if arguments.text is not None:
        changes["message"] = {**(await api.call("GET", path))["message"], "text": arguments.text}
    if arguments.stop or arguments.go_on:
        changes["state"] = "stopped" if arguments.stop else "active"
    return changes


COMMANDS: Mapping[str, Command] = {
    "send": Command(declare_send, over_http(send)),
    "track": Command(declare_key, over_http(track)),
    "show": Command(declare_show, over_http(show)),
    "answers": Command(declare_answers, over_http(answers)),
    "cancel": Command(declare_cancel, over_http(cancel)),
    "reschedule": Command(declare_reschedule, over_http(reschedule)),
    "series": Command(declare_series, over_http(run_series)),
}
