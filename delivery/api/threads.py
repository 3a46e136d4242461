"""Threads: what people reply to messages, for the inboxes that they reach, and the answers.

A person reads its own inbox and those of its offices. Another inbox is read by an administrator, or a key with `admin`
or `inspect`, and only with a reason (the header `Ada-Reason`), which goes to the action log.
"""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import Annotated, Literal

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from core.admission.quotas import ADMIN
from core.errors import Conflict, Forbidden, Invalid, NotFound
from core.model.clock import from_ms, write_time
from core.model.content import AttachmentType
from core.model.field_types import Label, UploadId, whole
from core.model.history_key import Id
from core.model.people import User, id_text
from core.threads import Inbox, Thread, ThreadMessage
from core.threads.files import ThreadFiles, as_words
from core.threads.incoming import Written
from core.threads.limits import ReplyLimits
from core.threads.threads import ANSWERING, USER, Colleague
from core.threads.typed_addresses import typed_addresses
from core.uploads import not_found
from delivery.api.deliveries.sending import Text
from delivery.http.action_log import reason_of, write_reading
from delivery.http.context import ApiRequest, Request, Response, next_page_link
from delivery.http.fields import Limit, RequestModel, cursor_form
from delivery.http.idempotency import IDEMPOTENCY_KEY
from delivery.http.responses.downloads import OCTETS, send_content
from delivery.http.route import NEXT_PAGE, NoParameters, People, PlainRequest, Repeats, Route, Routes

InboxName = Annotated[
    str,
    Meta(
        max_length=136,
        pattern=whole(r"(user|office):[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?"),
        description="the inbox of a person, such as user:7, or of a group, such as office:rectorate",
        extra={"pattern": "INBOX_MALFORMED"},
    ),
]


class ThreadFileView(Struct):
    """A file of a message. `bytes`: its size, without what a camera had written into it."""

    id: str
    name: str
    type: AttachmentType
    bytes: int


class MessageView(Struct):
    """A message of a thread. `side`: person or staff; `by`: the id of who has written it. `files`: how many files its
    author had added that are not passed on; `attachments`: those that are. `delivery`: by which an answer went out.
    `corrects`: it is an edit of an earlier message of its author. `unverified`: somebody else may have written it.
    `small_pictures`: how many of the signature of a mail were left out.
    """

    number: int
    side: str
    at: str
    by: Id
    text: str
    channel: str | None
    files: int
    delivery: str | None
    corrects: bool = False
    attachments: Sequence[ThreadFileView] = ()
    unverified: bool = False
    small_pictures: int = 0

    @classmethod
    def of(cls, one: ThreadMessage) -> "MessageView":
        at = write_time(from_ms(one.at))
        return cls(
            one.number,
            one.side,
            at,
            one.by,
            one.text,
            one.channel or None,
            one.files,
            one.delivery or None,
            one.corrects,
            [ThreadFileView(file.id, file.name, file.type, file.bytes) for file in one.attachments],
            one.is_unverified,
            one.small_pictures,
        )


class ThreadPerson(Struct):
    """The person of a thread, or who answers it. `name`: null if the directory does not know it."""

    id: Id
    name: str | None


class ThreadView(Struct):
    """A thread. `unread`: messages of the person that nobody has read. `delivery`: the one replied to last.
    `answering`: the reader of an office who is answering at this moment, null for nobody.
    """

    id: str
    inbox: str
    person: ThreadPerson
    channel: str
    delivery: str | None
    last_at: str
    messages: int
    unread: int
    newest: MessageView | None
    muted: bool = False
    answering: ThreadPerson | None = None

    @classmethod
    def of(cls, one: Thread, answering: ThreadPerson | None = None) -> "ThreadView":
        person = ThreadPerson(one.person.id, one.person.name)
        newest = MessageView.of(one.newest) if one.newest else None
        last_at = write_time(from_ms(one.last))
        place = one.id, str(one.inbox), person, one.way.channel, one.delivery or None
        return cls(*place, last_at, one.messages, one.unread, newest, one.is_muted, answering)


class AnsweringNow(Struct):
    """`colleague`: who is answering at this moment; null if it is nobody but the caller."""

    colleague: ThreadPerson | None


class InboxView(Struct):
    """An inbox of the caller. `unread`: threads that have messages nobody has read."""

    id: str
    title: str
    unread: int


class ThreadPage(Struct):
    """A page of threads, the newest first. `inboxes`: those of the signed-in person; of a program none."""

    inboxes: Sequence[InboxView]
    threads: Sequence[ThreadView]
    next: str | None


class ThreadDetails(Struct):
    """A thread with a page of its messages, the newest first."""

    thread: ThreadView
    messages: Sequence[MessageView]
    next: str | None


class ThreadQuery(RequestModel, frozen=True):
    """`inbox`: user:ID or office:GROUP; default: the person's own. `q`: a text in the name of the person or in one of
    the newest hundred messages. `unread`: only threads with unread messages.
    """

    inbox: InboxName | UnsetType = UNSET
    q: Label | UnsetType = UNSET
    unread: Literal["", "1", "true", "0", "false"] | UnsetType = UNSET
    cursor: Annotated[str, cursor_form("[0-9]{1,15}-[0-9]{1,5}[.][0-9a-f]{20}")] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class MessagesQuery(RequestModel, frozen=True):
    """`cursor`: of an earlier page."""

    cursor: Annotated[str, cursor_form("[1-9][0-9]{0,14}")] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


MOST_FILES = 10
"""Of an answer: as many as Telegram and VK show together."""


class ThreadAnswer(RequestModel, frozen=True):
    """An answer to the person of a thread: a text, files, or both. `files`: ids of uploaded files; pictures are stored
    again without what a camera has written into them. `with_addresses`: it may have addresses, telephones or @names in
    it, also in the names of files; else one with them is refused. `again`: it is sent although a colleague is answering
    at this moment, or has answered since the person wrote last.
    """

    text: Text | UnsetType = UNSET
    with_addresses: bool = False
    again: bool = False
    files: (
        Annotated[list[UploadId], Meta(max_length=MOST_FILES, extra={"long": "TOO_MANY_ATTACHMENTS"})] | UnsetType
    ) = UNSET


class ThreadAnswering(RequestModel, frozen=True):
    """`ended`: the caller answers no longer."""

    ended: bool = False


class ThreadMute(RequestModel, frozen=True):
    """`muted`: whether what the person writes is not unread and not sent to the readers. It still gets messages, and is
    not told.
    """

    muted: bool = True


class ThreadReport(RequestModel, frozen=True):
    """`why`: for the administrators, who find it in the action log."""

    why: Annotated[str, Meta(min_length=1, max_length=256, extra={"short": "REASON_MISSING"})]


class ThreadRead(Struct):
    """`unread`: messages of the person behind the newest one that was read."""

    unread: int


async def list_page(request: Request[None, ThreadQuery]) -> Response:
    query, person = request.query, request.identity.person
    if not query.inbox and person is None:
        raise Invalid("INBOX_MISSING", "A program has no inbox of its own: name one.", "inbox")
    inbox = Inbox.parse(query.inbox) if query.inbox else Inbox(USER, id_text(person.id) if person else "")
    await _check_reader(request, inbox)
    threads, page_of = request.services.core.threads, (query.cursor or None, query.limit or 50)
    is_unread = query.unread in ("", "1", "true")
    if query.q:
        found, more = await threads.search(request.tenant, inbox, query.q, *page_of, unread=is_unread)
    else:
        found, more = await threads.page(request.tenant, inbox, *page_of, unread=is_unread)
    views = [ThreadView.of(one, await _reader(request, one.answering)) for one in found]
    page = ThreadPage(await _own_inboxes(request), views, more)
    return Response(page, headers=next_page_link(request.http, more))


async def show(request: Request[None, MessagesQuery]) -> Response:
    thread, query = await _thread(request), request.query
    before = int(query.cursor or 0)
    found = await request.services.core.threads.messages(thread, before, query.limit or 100)
    more = str(found[-1].number) if found and found[-1].number > 1 and len(found) == (query.limit or 100) else None
    view = ThreadView.of(thread, await _reader(request, thread.answering))
    details = ThreadDetails(view, [MessageView.of(one) for one in found], more)
    return Response(details, headers=next_page_link(request.http, more))


async def answer(request: Request[ThreadAnswer, NoParameters]) -> Response:
    thread, person, body = await _thread(request), request.identity.person, request.body
    if not body.text and not body.files:
        raise Invalid("TEXT_EMPTY", "An answer has a text, files, or both.", "text")
    services, text, by = request.services.core, body.text or "", person.id if person else request.key.name
    stored = ThreadFiles(services.store, services.client, request.services.uploads)
    files = [await stored.store_again(request.tenant, one, thread.id) for one in body.files or ()]
    typed = f"{text}\n{as_words([one.name for one in files])}"
    if not body.with_addresses and (found := typed_addresses(typed)):
        raise Conflict(
            "ADDRESS_IN_TEXT", f"The person would see this: {', '.join(found)}. `with_addresses` sends it.", "text"
        )
    key = request.http.headers.get(IDEMPOTENCY_KEY)
    event = blake2b(key.encode(), digest_size=9).hexdigest() if key else secrets.token_hex(9)
    if not body.again and (colleague := await services.threads.claim_answer(thread, by, sends=True)):
        raise _second(colleague)
    await ReplyLimits(services.store).check_thread(request.tenant, thread.id, event)
    written = Written(event, text, attachments=files)
    added = await services.relay.to_person(thread, person, by, written, "")
    return Response(MessageView.of(added.message), 201)


def _second(colleague: Colleague) -> Conflict:
    if colleague.has_answered:
        code, detail = "ANSWERED_ALREADY", f"{colleague.id} has answered since the person wrote last."
    else:
        code, detail = "ANSWERING_NOW", f"{colleague.id} is answering at this moment."
    return Conflict(code, f"{detail} `again` sends yours, too.", "again")


async def note_answering(request: Request[ThreadAnswering, NoParameters]) -> Response:
    """Note for a minute that the caller is answering, unless a colleague is."""
    thread, person, services = await _thread(request), request.identity.person, request.services.core
    who, kept = person.id if person else request.key.name, timedelta() if request.body.ended else ANSWERING
    colleague = await services.threads.claim_answer(thread, who, kept)
    return Response(AnsweringNow(await _reader(request, colleague.id) if colleague else None))


async def show_file(request: PlainRequest) -> web.StreamResponse:
    thread, place = await _thread(request), request.http.match_info
    number = int(place["message"]) if place["message"].isdecimal() else 0
    found = await request.services.core.threads.messages(thread, number + 1, 1) if number else []
    file = next((file for one in found for file in one.attachments if file.id == place["file"]), None)
    if file is None:
        raise not_found(place["file"])
    return await send_content(request, file.id, file.name)


async def mark_read(request: PlainRequest) -> Response:
    thread = await _thread(request)
    return Response(ThreadRead(await request.services.core.threads.mark_read(thread, thread.messages)))


async def mute(request: Request[ThreadMute, NoParameters]) -> Response:
    """Mute the person of a thread, or end that."""
    thread = await _thread(request)
    await request.services.core.threads.mark(thread, "mute" if request.body.muted else "unmute")
    return Response(None, 204)


async def hide(request: PlainRequest) -> Response:
    """Hide a thread until its person writes again."""
    await request.services.core.threads.mark(await _thread(request), "hide")
    return Response(None, 204)


async def report(request: Request[ThreadReport, NoParameters]) -> Response:
    thread = await _thread(request)
    await write_reading(f"report {thread.id}: {request.body.why}", request)
    return Response(None, 204)


async def _thread(request: ApiRequest) -> Thread:
    """Return the thread that the address names. Raises NotFound THREAD_NOT_FOUND, also for one of another inbox."""
    thread = await request.services.core.threads.find(request.tenant, request.part("thread"))
    try:
        await _check_reader(request, thread.inbox)
    except Forbidden:
        raise NotFound("THREAD_NOT_FOUND", "There is no such thread.") from None
    return thread


async def _check_reader(request: ApiRequest, inbox: Inbox) -> None:
    """Check that the caller may read an inbox; a reading of another one is written down. Raises Forbidden
    INBOX_NOT_YOURS, REASON_MISSING.
    """
    person, key = request.identity.person, request.key
    if person and await request.services.core.relay.readers.reads(request.tenant, inbox, person):
        return
    may_read = person.role == ADMIN if person else key.permits("admin") or "inspect" in key.scopes
    if not may_read:
        raise Forbidden("INBOX_NOT_YOURS", "Nobody but its readers sees an inbox.", "inbox")
    if not reason_of(request.http):
        raise Forbidden(
            "REASON_MISSING", "Threads of others are read only with a reason: the header Ada-Reason, --reason."
        )
    await write_reading(f"read {inbox}", request)


async def _reader(request: ApiRequest, reader: str) -> ThreadPerson | None:
    return (
        ThreadPerson(reader, await request.services.core.relay.readers.name_of(request.tenant, reader))
        if reader
        else None
    )


async def _own_inboxes(request: ApiRequest) -> Sequence[InboxView]:
    person, services = request.identity.person, request.services.core
    if person is None:
        return []
    inboxes = await services.relay.readers.inboxes_of(request.tenant, person)
    titles = [await _title(request, one, person) for one in inboxes]
    counts = [await services.threads.count_unread(request.tenant, one) for one in inboxes]
    return [InboxView(str(one), title, n) for one, title, n in zip(inboxes, titles, counts, strict=True)]


async def _title(request: ApiRequest, inbox: Inbox, reader: User) -> str:
    """Return the title of an inbox for its reader; that of a person merged into the reader has its former id."""
    title = await request.services.core.relay.readers.title_of(request.tenant, inbox, reader.locale)
    is_inherited = inbox.kind == USER and inbox.id != id_text(reader.id)
    return f"{title} ({inbox.id})" if is_inherited else title


ROUTES: Routes = (
    Route("GET", "/v1/threads", "List the threads of an inbox: what people reply to messages", "read",
          list_page, 200, ThreadPage, query=ThreadQuery, headers=NEXT_PAGE, people=People.OWN),
    Route("GET", "/v1/threads/{thread}", "Show a thread with its messages", "read",
          show, 200, ThreadDetails, query=MessagesQuery, headers=NEXT_PAGE, people=People.OWN),
    Route("POST", "/v1/threads/{thread}/messages", "Answer the person of a thread, in the channel it wrote from",
          "send", answer, 201, MessageView, body=ThreadAnswer, repeats=Repeats.STORED, people=People.OWN),
    Route("GET", "/v1/threads/{thread}/messages/{message}/files/{file}", "Download a file of a message", "read",
          show_file, 200, OCTETS, people=People.OWN),
    Route("POST", "/v1/threads/{thread}:answering", "Say that one is answering the person of a thread, for a minute",
          "send", note_answering, 200, AnsweringNow, body=ThreadAnswering, people=People.OWN),
    Route("POST", "/v1/threads/{thread}:read", "Mark the messages of a thread as read", "send",
          mark_read, 200, ThreadRead, people=People.OWN),
    Route("POST", "/v1/threads/{thread}:mute", "Mute the person of a thread, or end that", "send",
          mute, 204, body=ThreadMute, people=People.OWN),
    Route("POST", "/v1/threads/{thread}:hide", "Hide a thread until its person writes again", "send",
          hide, 204, people=People.OWN),
    Route("POST", "/v1/threads/{thread}:report", "Report a thread to the administrators", "send",
          report, 204, body=ThreadReport, people=People.OWN),
)  # fmt: skip
