"""The options of `send`, the delivery and the question that they make, and the files that `send` and `reply` upload.

Couriers may run on other machines than the command, and send when the message is due, so they get what is uploaded.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from cli.client.http_client import ClientUpload, HttpClient, JsonObject
from cli.client.local_times import TIMES
from cli.client.verbs import parse_id
from cli.command import WRONG_USAGE, CommandFailed
from cli.files import STDIN, read_text_input
from core.model.content import TYPES_BY_ENDING, AttachmentType

_MOST_TEXT_BYTES = 2**16
"""Of standard input; the API refuses a text of 4,096 characters more precisely."""

_BELONGS_TO = {
    "of": "follow_up",
    "sheet": "table",
    "encoding": "table",
    "zone": "every",
    "last": "every",
    "consent": "ask",
}
"""Options of `send` → the option without which they would mean nothing."""


def declare_send(parser: ArgumentParser) -> None:
    _declare_recipients(parser)
    _declare_message(parser)
    _declare_question(parser)
    _declare_terms(parser)
    parser.add_argument("--wait", action="store_true", help="wait until the delivery is finished, as track does")
    parser.add_argument(
        "--preview", action="store_true", help="show the people it would reach, and how many SMS; send nothing"
    )


def _declare_recipients(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--to",
        action="append",
        metavar="RECIPIENT",
        help="7, 7=telegram:100001,sms:+7…, telegram:100001 or group:NAME, as in the API and in the web console; "
        "repeat for several",
    )
    add(
        "--table",
        metavar="FILE",
        help="send to each row of a .csv or .xlsx file; {{mark}} in the text stands for the cell of the column mark",
    )
    add(
        "--audience",
        choices=["students", "guardians", "both"],
        help="who gets it: those that are named (default), their guardians, or both",
    )
    add("--sheet", metavar="NAME", help="with --table: the sheet, if several have values")
    add("--encoding", metavar="NAME", help="with --table: of a .csv file, for example windows-1251")
    add(
        "--follow-up",
        metavar="KEY",
        help="send to the people that this delivery did not reach, by --channel; its text again, unless --text is "
        "given, and its question, unless another one is",
    )
    add("--of", choices=["unreached", "unanswered"], help="with --follow-up: its recipients (default: unreached)")


def _declare_message(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--text", help="the text; - reads it from standard input. Not needed with --file")
    add(
        "--text-in",
        action="append",
        metavar="LANGUAGE=TEXT",
        help="the text for people of a language, for example en=Hello, in place of --text; repeat for several",
    )
    add(
        "--personal",
        action="store_true",
        default=None,
        help="{{first_name}} in the text stands for a value of each recipient",
    )
    add(
        "--file",
        action="append",
        metavar="FILE",
        help="attach a file of this machine, or the one at an address such as https://example.org/menu.pdf; "
        "repeat for several",
    )


def _declare_question(parser: ArgumentParser) -> None:
    add = parser.add_argument
    asks = parser.add_mutually_exclusive_group()
    asks.add_argument("--confirm", action="store_true", help='ask for a confirmation, with a button "I have read it"')
    asks.add_argument(
        "--ask",
        metavar="OPTIONS",
        help="ask with a button for each option, for example 'Yes|No'; 'Yes=20|No' has 20 places",
    )
    asks.add_argument(
        "--ask-for", choices=["text", "number", "date", "file"], help="ask for an answer that people write or send"
    )
    add("--until", metavar="TIME", help="with --confirm, --ask or --ask-for: when the question closes")
    add(
        "--remind",
        metavar="TIMES",
        help="remind recipients without an answer, such as 12h, or 12h,1d,3: after 12 hours, then each day, 3 times",
    )
    add(
        "--escalate",
        metavar="TIME:CHANNELS",
        help="ask recipients without an answer in other channels, for example 2h:sms,email",
    )
    add("--consent", action="store_true", help="with --ask 'Yes|No' to guardians: a refusal of one of them counts")
    add("--visible", choices=["named", "hidden", "anonymous"], help="who may see the answer of a person")
    add("--final", action="store_true", help="the first answer counts; within a minute it can be corrected")
    add("--late", choices=["keep", "count"], help="whether an answer after the closing counts (default: keep)")
    add(
        "--need",
        metavar="PEOPLE[,TIME]",
        help="ask one wave after another until so many have chosen the first option, for example 3,30m (default: 1h)",
    )


def _declare_terms(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--replies", metavar="TO", help="where replies go: sender, off, or a group whose members read them together")
    add("--channel", action="append", help="send only through this channel; repeat for several")
    add("--at", metavar="TIME", help=f"when to send (default: at once): {TIMES}")
    add("--expires", metavar="TIME", help="do not send after this time")
    add("--far", action="store_true", default=None, help="the time may be more than a year ahead")
    add("--urgent", action="store_true", default=None, help="send also in quiet hours (needs the scope urgent)")
    add("--strategy", choices=["all", "first"], help="all channels, or one after the other until one succeeds")
    add(
        "--fallback-after",
        metavar="DURATION",
        help="with --strategy first: try the next channel if no delivery report came, for example 2m",
    )
    add("--sender", default="ada", metavar="ID", help="the id of the sender (default: ada)")
    add("--lane", help="deliveries of one lane are sent strictly one after the other")
    add("--priority", type=int, help="a lower number is sent first")
    add("--tag", action="append", help="a label to find or cancel the delivery by; repeat for several")
    add(
        "--every",
        metavar="TIMES",
        help="again and again: 'every Monday 8:00', 'по будням в 9:00', or five fields of cron",
    )
    add("--zone", help="with --every: the time zone of these times (default: that of the tenant)")
    add("--last", metavar="TIME", help="with --every: send nothing after this time")
    add("--repeat-key", metavar="KEY", default="", help="idempotency key: calls with the same key send once")


def new_delivery(arguments: Namespace) -> dict[str, Any]:
    """Return the request body, without files and the options that were not given. Raises CommandFailed."""
    if arguments.text is None and not arguments.file and not arguments.follow_up:
        raise CommandFailed("send what? Give --text, or --file", WRONG_USAGE)
    named = [one for one in (arguments.to, arguments.table, arguments.follow_up) if one]
    if not named or (arguments.follow_up and len(named) > 1):
        raise CommandFailed("Name the recipients by --to and --table, or by --follow-up alone.", WRONG_USAGE)
    check_options(arguments)
    body = {
        "sender": {"id": parse_id(arguments.sender)},
        "text": read_text_input(STDIN, _MOST_TEXT_BYTES) if arguments.text == STDIN else arguments.text,
        "recipients": arguments.to or [],
        "personal": arguments.personal,
        "origin": "cli",
        "channels": arguments.channel,
        "deliver_at": arguments.at,
        "far": arguments.far,
        "expires_at": arguments.expires,
        "urgent": arguments.urgent,
        "strategy": arguments.strategy,
        "wait": _duration(arguments.fallback_after) if arguments.fallback_after else None,
        "lane": arguments.lane,
        "priority": arguments.priority,
        "tags": arguments.tag,
        "answer": new_question(arguments),
        "replies": arguments.replies,
        "audience": arguments.audience,
        "texts": texts_by_language(arguments.text_in),
    }
    return {name: value for name, value in body.items() if value is not None}


def check_options(arguments: Namespace) -> None:
    """Refuse options that would be ignored: those without the one that they belong to. Raises CommandFailed."""
    for name, other in _BELONGS_TO.items():
        if getattr(arguments, name) and not getattr(arguments, other):
            raise CommandFailed(f"--{name} belongs to --{other.replace('_', '-')}", WRONG_USAGE)
    if arguments.preview and (arguments.wait or arguments.every):
        raise CommandFailed("--preview sends nothing: leave out --wait and --every", WRONG_USAGE)
    if arguments.wait and arguments.every:
        raise CommandFailed(
            "--wait waits for one delivery; with --every, `ada series` shows what was sent", WRONG_USAGE
        )


def texts_by_language(given: list[str] | None) -> dict[str, str] | None:
    """Return language → text; None if none was given. Raises CommandFailed."""
    pairs = [one.partition("=") for one in given or ()]
    if any(not equals for _, equals, _ in pairs):
        raise CommandFailed("--text-in is a language and a text, for example en=Hello", WRONG_USAGE)
    return {language.strip(): text for language, _, text in pairs} or None


def new_question(arguments: Namespace) -> dict[str, Any] | None:
    """Return what the delivery asks, None if it asks nothing. Raises CommandFailed."""
    terms = terms_of_question(arguments)
    if arguments.confirm:
        return {"kind": "confirm", **terms}
    if arguments.ask_for:
        return {"kind": arguments.ask_for, **terms}
    if arguments.ask is None:
        if not arguments.follow_up:
            refuse_terms(terms)
        return None
    texts = [text.strip() for text in arguments.ask.split("|")]
    if len(texts) < 2:
        raise CommandFailed("--ask needs two options at least, with | between them: --ask 'Yes|No'", WRONG_USAGE)
    options = [_option(number, text) for number, text in enumerate(texts, 1)]
    consent = {"consent": True} if arguments.consent else {}
    return {"kind": "choice", "options": options, **consent, **terms}


def asks(arguments: Namespace) -> bool:
    return bool(arguments.confirm or arguments.ask_for or arguments.ask is not None)


def refuse_terms(terms: Mapping[str, Any]) -> None:
    """Refuse terms of a question where nothing is asked. Raises CommandFailed."""
    for name in terms:
        raise CommandFailed(
            f"--{'final' if name == 'change' else name} belongs to --confirm, --ask or --ask-for", WRONG_USAGE
        )


def _option(number: int, text: str) -> dict[str, Any]:
    """Return an option; `Yes=20` has twenty places."""
    name, _, places = text.rpartition("=")
    if name and places.isdecimal():
        return {"key": str(number), "text": name.strip(), "places": int(places)}
    return {"key": str(number), "text": text}


def terms_of_question(arguments: Namespace) -> dict[str, Any]:
    """Return until when a question is open, and how it is asked again. Raises CommandFailed."""
    change = False if arguments.final else None
    given = {"until": arguments.until, "visible": arguments.visible, "change": change, "late": arguments.late}
    terms: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if arguments.remind:
        after, *rest = arguments.remind.split(",")
        terms["remind"] = {"after": _duration(after)}
        if rest:
            terms["remind"]["every"] = _duration(rest[0])
        if len(rest) > 1:
            terms["remind"]["most"] = int(rest[1]) if rest[1].isdecimal() else rest[1]
    if arguments.need:
        people, _, every = arguments.need.partition(",")
        terms["need"] = int(people) if people.isdecimal() else people
        terms |= {"wave": _duration(every)} if every else {}
    if arguments.escalate:
        after, _, channels = arguments.escalate.partition(":")
        if not channels:
            raise CommandFailed("--escalate is a time and channels, for example 2h:sms", WRONG_USAGE)
        terms["escalate"] = {"after": _duration(after), "channels": channels.split(",")}
    return terms


def _duration(text: str) -> str:
    """Return 90m, 12h or 2d as an ISO 8601 duration; anything else as it is."""
    number, unit = text.strip()[:-1], text.strip()[-1:]
    if not number.isdecimal() or unit not in "smhd":
        return text
    return f"P{number}D" if unit == "d" else f"PT{number}{unit.upper()}"


async def attach(api: HttpClient, written: str) -> dict[str, str]:
    """Return the attachment of an address or of a path. Raises CommandFailed."""
    if written.startswith(("http://", "https://")):
        return {"type": _type_of(written), "url": written}
    stored = await _upload(api, "--file", written)
    return {"type": stored["type"], "file": stored["id"]}


async def upload_file(api: HttpClient, path: str) -> str:
    """Upload a file; return its id. Raises CommandFailed."""
    return str((await _upload(api, "--file", path))["id"])


async def upload_table(api: HttpClient, path: str) -> str:
    """Upload a table of recipients; return its id. Raises CommandFailed."""
    return str((await _upload(api, "--table", path))["id"])


def _type_of(address: str) -> str:
    return TYPES_BY_ENDING.get(PurePosixPath(urlsplit(address).path).suffix.lower(), AttachmentType.DOCUMENT)


async def _upload(api: HttpClient, option: str, written: str) -> JsonObject:
    """Upload a file of this machine. Raises CommandFailed, which names the option."""
    try:
        return await _upload_file(api, option, Path(written))
    except CommandFailed as refusal:
        raise CommandFailed(f"{option} {written}: {refusal}", refusal.code) from None


async def _upload_file(api: HttpClient, option: str, path: Path) -> JsonObject:
    try:
        with path.open("rb") as file:
            upload = ClientUpload(file, "application/octet-stream")
            stored = await api.upload("/v1/files", upload, {"name": path.name})
    except IsADirectoryError:
        raise CommandFailed(f"it is a folder; {option} takes one file", WRONG_USAGE) from None
    except OSError as fault:
        raise CommandFailed(f"the file cannot be read: {fault.strerror}", WRONG_USAGE) from None
    if "id" not in stored:
        raise CommandFailed(stored["detail"])
    return stored
