"""The verbs inbox and reply: what people reply to messages, and answers to them, over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from textwrap import indent, wrap
from typing import Any
from zoneinfo import ZoneInfo

from cli.client.format_history import shorten
from cli.client.http_client import HttpClient, items, quoted
from cli.client.local_times import in_zone
from cli.client.verbs import over_http, print_result, print_stream
from cli.command import WRONG_USAGE, Command, CommandFailed
from cli.commands.messages.new_delivery import upload_file

_PATH = "/v1/threads"
_WIDTH = 80
_NAME = 30
"""Characters of a name before the newest words of a thread."""
_WHICH = """this key is of no person, so it has no inbox of its own. Name one:
       ./ada inbox ID --reason WHY            replies to what ID has sent
       ./ada inbox office:GROUP --reason WHY  those to an office
       ./ada user list, ./ada group list      the ids
       The reason goes to the action log. With a key of your own (Account in
       the console) `./ada inbox` shows your inbox."""


def declare_inbox(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="INBOX|THREAD",
        nargs="?",
        default="",
        help="a sender's id, office:GROUP, or the id of a thread, to read it; without one, with a key of your own "
        "(Account in the console), your inbox",
    )
    parser.add_argument("--unread", action="store_true", help="only threads with messages that nobody has read")
    parser.add_argument(
        "--search",
        metavar="TEXT",
        default="",
        help="only threads with a text in the person's name or in the newest hundred messages",
    )
    _declare_reason(parser)


def declare_reply(parser: ArgumentParser) -> None:
    parser.add_argument("thread", metavar="THREAD", help="the id of the thread, as ./ada inbox prints it")
    parser.add_argument("--text", help="the answer; it goes to the channel in which the person wrote")
    parser.add_argument("--file", action="append", default=[], help="a file of this machine; repeat for several")
    parser.add_argument(
        "--again", action="store_true", help="send it though a colleague has answered since the person wrote last"
    )
    parser.add_argument(
        "--with-addresses", action="store_true", help="send it though there is an address or a telephone in it"
    )
    parser.add_argument("--repeat-key", metavar="KEY", default="", help="calls with the same key answer once")
    _declare_reason(parser)


def _declare_reason(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--reason",
        metavar="WHY",
        default="",
        help="why you read what people wrote to others; it is logged, and needed but for your own inboxes",
    )


async def inbox(api: HttpClient, arguments: Namespace) -> int:
    """Print the threads of an inbox, or the messages of one thread."""
    me = await api.call("GET", "/v1/me")
    what, reason, zone = arguments.what, arguments.reason, ZoneInfo(me["timezone"])
    if not what and me["kind"] == "key":
        raise CommandFailed(_WHICH, WRONG_USAGE)
    if _is_thread(what):
        if arguments.unread or arguments.search:
            raise CommandFailed("--unread and --search choose threads of an inbox, not messages of one", WRONG_USAGE)
        details = await api.call("GET", f"{_PATH}/{what}", query={"limit": "1000"}, reason=reason)
        return print_result(arguments, details, "\n".join(_thread_lines(in_zone(details, zone))))
    query = {"inbox": what if ":" in what else f"user:{what}"} if what else {}
    query |= {"unread": "true"} if arguments.unread else {}
    query |= {"q": arguments.search} if arguments.search else {}
    threads = items(api, _PATH, "threads", query, reason=reason)
    printed = await print_stream(arguments, threads, lambda one: "\n".join(_lines(in_zone(one, zone))))
    if not what and not arguments.json:
        await _print_other_inboxes(api)
    return printed


async def _print_other_inboxes(api: HttpClient) -> None:
    """Print the inboxes that a person reads besides its own."""
    _, *others = (await api.call("GET", _PATH, query={"limit": "1"}))["inboxes"]
    for one in others:
        print(f"./ada inbox {one['id']}  {shorten(one['title'], _NAME)}  {_unread(one)}")


async def reply(api: HttpClient, arguments: Namespace) -> int:
    path = f"{_PATH}/{quoted(arguments.thread)}/messages"
    key, reason = arguments.repeat_key, arguments.reason
    files = [await upload_file(api, path) for path in arguments.file]
    given = {"text": arguments.text, "files": files}
    flags = {"with_addresses": arguments.with_addresses, "again": arguments.again}
    body = {**flags, **{name: value for name, value in given.items() if value}}
    message = await api.call("POST", path, body, idempotency_key=key, reason=reason)
    left = f", without {message['files']} of the files: its channel does not show them" if message["files"] else ""
    return print_result(arguments, message, f"{message['delivery']}  sent{left}")


def _is_thread(what: str) -> bool:
    shard, dot, code = what.partition(".")
    return bool(dot) and shard.isdecimal() and len(code) == 20


def _lines(thread: Mapping[str, Any]) -> Iterator[str]:
    """Emit a thread of a list: where and when it was written in, and its newest words."""
    muted = "  muted" if thread["muted"] else ""
    yield f"{thread['id']}  {thread['last_at']}  {thread['channel']}  {_unread(thread)}{muted}"
    if newest := thread["newest"]:
        words = newest["text"] or ", ".join(one["name"] for one in newest["attachments"]) or "files"
        answered = "answered: " if newest["side"] == "staff" else ""
        yield "  " + shorten(f"{shorten(_name(thread), _NAME)}: {answered}{words}", _WIDTH - 2)


def _unread(counted: Mapping[str, Any]) -> str:
    return f"{counted['unread']} unread" if counted["unread"] else "read"


def _name(thread: Mapping[str, Any]) -> str:
    return str(thread["person"]["name"] or thread["person"]["id"])


def _thread_lines(details: Mapping[str, Any]) -> Iterator[str]:
    thread = details["thread"]
    yield shorten(f"{_name(thread)} and {thread['inbox']}, in {thread['channel']}", _WIDTH)
    for one in reversed(details["messages"]):
        who = _name(thread) if one["side"] == "person" else one["by"]
        yield f"{one['at']}  {shorten(str(who), _WIDTH - 40)}{' corrects' if one['corrects'] else ''}"
        if one["unverified"]:
            yield "  (not certain that this person wrote it)"
        for line in one["text"].splitlines():
            yield indent("\n".join(wrap(line, _WIDTH - 2, break_long_words=False, break_on_hyphens=False)), "  ")
        for file in one["attachments"]:
            yield f"  [{file['name']}]"
        if one["files"]:
            yield f"  (with {one['files']} files that were not passed on)"
        if one["small_pictures"]:
            yield f"  (with {one['small_pictures']} small pictures of the signature that were left out)"


COMMANDS: Mapping[str, Command] = {
    "inbox": Command(declare_inbox, over_http(inbox)),
    "reply": Command(declare_reply, over_http(reply)),
}
