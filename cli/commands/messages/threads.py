"""The verbs inbox and reply: what people reply to messages, and answers to them, over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from cli.client.attachments import upload_file
from cli.client.format_history import align, shorten
from cli.client.http_client import HttpClient, quoted
from cli.client.local_times import in_zone, zone_of
from cli.client.verbs import over_http, print_result
from cli.command import Command

_PATH = "/v1/threads"


def declare_inbox(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what", metavar="INBOX|THREAD", help="a sender's id, office:GROUP, or the id of a thread, to read it"
    )
    parser.add_argument("--unread", action="store_true", help="only threads with messages that nobody has read")
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
    parser.add_argument("--reason", required=True, help="why you read what people wrote to others; it is logged")


async def inbox(api: HttpClient, arguments: Namespace) -> int:
    """Print the threads of an inbox, or the messages of one thread."""
    what: str = arguments.what
    if _is_thread(what):
        details = await api.call("GET", f"{_PATH}/{what}", query={"limit": "1000"}, reason=arguments.reason)
        return print_result(
            arguments, details, "\n".join(_thread_lines(in_zone(details, await zone_of(api, arguments))))
        )
    query = {"inbox": what if ":" in what else f"user:{what}", "limit": "1000"}
    query |= {"unread": "true"} if arguments.unread else {}
    page = await api.call("GET", _PATH, query=query, reason=arguments.reason)
    rows = [_row(one) for one in page["threads"]]
    return print_result(arguments, page, "\n".join(align(rows)) if rows else "Nobody has written to this inbox.")


async def reply(api: HttpClient, arguments: Namespace) -> int:
    """Answer the person of a thread."""
    path = f"{_PATH}/{quoted(arguments.thread)}/messages"
    key, reason = arguments.repeat_key, arguments.reason
    files = [await upload_file(api, path) for path in arguments.file]
    given = {"text": arguments.text, "files": files}
    flags = {"with_addresses": arguments.with_addresses, "again": arguments.again}
    body = {**flags, **{name: value for name, value in given.items() if value}}
    message = await api.call("POST", path, body, idempotency_key=key, reason=reason)
    return print_result(arguments, message, f"{message['delivery']}  sent")


def _is_thread(what: str) -> bool:
    shard, dot, code = what.partition(".")
    return bool(dot) and shard.isdecimal() and len(code) == 20


def _row(thread: Mapping[str, Any]) -> list[str]:
    newest = thread["newest"]
    unread = f"{thread['unread']} unread" if thread["unread"] else "read"
    return [thread["id"], _name(thread), thread["channel"], unread, shorten(newest["text"], 40) if newest else ""]


def _name(thread: Mapping[str, Any]) -> str:
    return str(thread["person"]["name"] or thread["person"]["id"])


def _thread_lines(details: Mapping[str, Any]) -> Iterator[str]:
    thread = details["thread"]
    yield f"{_name(thread)} and {thread['inbox']}, in {thread['channel']}"
    for one in reversed(details["messages"]):
        who = _name(thread) if one["side"] == "person" else one["by"]
        names = [f"[{file['name']}]" for file in one["attachments"]]
        files = f" (with {one['files']} files that were not passed on)" if one["files"] else ""
        mark = " (not certain that this person wrote it)" if one["unverified"] else ""
        yield f"{one['at']}  {who}: {' '.join(filter(None, [one['text'], *names]))}{files}{mark}"


COMMANDS: Mapping[str, Command] = {
    "inbox": Command(declare_inbox, over_http(inbox)),
    "reply": Command(declare_reply, over_http(reply)),
}
