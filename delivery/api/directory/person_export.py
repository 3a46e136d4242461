"""What is stored of a person: the deliveries to it as pages, and all of the directory, deliveries and threads as one
file.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

from aiohttp import web
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from core.deliveries import of_person
from core.deliveries.of_person import ChildAnswer, PersonDelivery
from core.errors import Forbidden, NotFound
from core.model.clock import from_ms, write_time
from core.model.history_key import Id
from core.model.json_form import JsonObject
from core.model.people import User, id_text
from core.model.question import Question, RecipientAnswer
from core.model.states import DeliveryState
from core.threads import Inbox, Thread
from core.threads.threads import USER
from delivery.api.deliveries.histories import ListCursor, OutcomeView, without_texts
from delivery.api.deliveries.questions import AnswerView
from delivery.api.deliveries.recipients import ListedRecipient
from delivery.api.directory.users import UserResponse
from delivery.api.threads import MessageView, ThreadView
from delivery.http.action_log import reason_of, write_reading
from delivery.http.context import ApiRequest, Request, Response, encode, next_page_link
from delivery.http.fields import Limit, RequestModel, optional
from delivery.http.responses import ndjson
from delivery.http.responses.downloads import download_headers
from delivery.http.route import NEXT_PAGE, People, PlainRequest, Route, Routes
from scenarios.stores.forms import Forms, Remembered


class PersonDeliveryQuery(RequestModel, frozen=True):
    """The page of the deliveries to a person."""

    cursor: ListCursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class PersonDeliveryView(Struct):
    """A delivery to a person, and what became of it for that person. `why`: why the person was not reached, if so.
    `text_hidden`: as of a delivery of a list.
    """

    id: str
    created_at: str
    sender: JsonObject
    text: str
    state: DeliveryState
    outcomes: Mapping[str, OutcomeView]
    why: str | None
    text_hidden: bool | UnsetType = UNSET

    @classmethod
    def of(cls, one: of_person.PersonDelivery, *, is_hidden: bool) -> "PersonDeliveryView":
        history = without_texts(one.history) if is_hidden else one.history
        recipient = ListedRecipient.of(one.recipient)
        known = history.key.id, write_time(history.created_at), history.sender, history.text, history.state
        return cls(*known, recipient.outcomes, recipient.why, is_hidden or UNSET)


class PersonDeliveryPage(Struct):
    """A page of deliveries to a person, newest first. It may be short although there is a `next` one."""

    deliveries: list[PersonDeliveryView]
    next: str | None


_DELIVERIES = 20
"""Deliveries of a page whose `limit` is not given."""


async def list_deliveries(request: Request[None, PersonDeliveryQuery]) -> Response:
    """Return a page of what was sent to a person, newest first; a person who asks sees those that it may see."""
    query, identity = request.query, request.identity
    found, cursor = await request.services.core.deliveries.of_person.page(
        request.tenant,
        request.part("id"),
        optional(query.cursor),
        query.limit or _DELIVERIES,
        lambda position: identity.may_see_deliveries_of(position.key.sender),
    )
    page = PersonDeliveryPage(
        [PersonDeliveryView.of(one, is_hidden=not identity.acts_for(one.history.key.sender)) for one in found], cursor
    )
    return Response(page, headers=next_page_link(request.http, cursor))


_AT_ONCE = 100


class ChildAnswerView(Struct):
    """The last answer of a guardian for a child. `text`: of the option."""

    child: Id
    name: str | None
    value: str
    text: str
    at: str

    @classmethod
    def of(cls, one: ChildAnswer, question: Question) -> "ChildAnswerView":
        option = question.option(one.value)
        text, at = option.text if option else one.value, write_time(from_ms(one.at))
        return cls(one.child.id, one.child.name, one.value, text, at)


class PersonExportLine(Struct):
    """A line: the person; what clients of SCIM say of it, by source; the ids of people that name it as a guardian; a
    delivery to it, with its answer, and with those that it has given as a guardian for children; a thread of the
    person or of its own inbox, and behind it its messages; or what bots have stored of it in a channel.
    """

    user: UserResponse | UnsetType = UNSET
    scim: Mapping[str, str] | UnsetType = UNSET
    children: Sequence[str] | UnsetType = UNSET
    delivery: PersonDeliveryView | UnsetType = UNSET
    answer: AnswerView | UnsetType = UNSET
    for_children: Sequence[ChildAnswerView] | UnsetType = UNSET
    thread: ThreadView | UnsetType = UNSET
    message: MessageView | UnsetType = UNSET
    remembered: Remembered | UnsetType = UNSET

    @classmethod
    def of_delivery(cls, one: PersonDelivery) -> "PersonExportLine":
        view, record, question = PersonDeliveryView.of(one, is_hidden=False), one.recipient, one.history.question
        view.text = record.text or view.text
        given = [ChildAnswerView.of(answer, question) for answer in one.for_children] if question else []
        answer = AnswerView.of(record.answer, question) if record.answer and question else UNSET
        return cls(delivery=view, answer=answer, for_children=given or UNSET)


async def export(request: PlainRequest) -> web.StreamResponse:
    """Send all that is stored of a person as lines of JSON. A fault in the middle breaks the response off."""
    user = await request.services.core.directory.users.find(request.tenant, request.part("id"))
    if not reason_of(request.http):
        raise Forbidden("REASON_MISSING", "Data of a person are exported only with a reason, in the header Ada-Reason.")
    await write_reading(f"export {user.id}", request)
    response = web.StreamResponse(headers=download_headers(f"{user.id}.ndjson", ndjson.CONTENT_TYPE))
    await response.prepare(request.http)
    await response.write(encode(PersonExportLine(user=UserResponse.of(user), scim=user.scim or UNSET)) + b"\n")
    if children := await request.services.core.directory.users.children(request.tenant, user.id):
        await response.write(encode(PersonExportLine(children=children)) + b"\n")
    for lines in (_deliveries(request), _threads(request), _inbox(request, user), _remembered(request, user)):
        async for line in lines:
            await response.write(encode(line) + b"\n")
    await response.write_eof()
    return response


async def _deliveries(request: ApiRequest) -> AsyncIterator[PersonExportLine]:
    """Emit the deliveries to the person, newest first."""
    page, person, cursor = request.services.core.deliveries.of_person.page, request.part("id"), None
    while True:
        found, cursor = await page(request.tenant, person, cursor, _AT_ONCE, lambda _: True)
        for one in found:
            yield PersonExportLine.of_delivery(await _with_hidden_answer(request, one))
        if cursor is None:
            return


async def _with_hidden_answer(request: ApiRequest, one: PersonDelivery) -> PersonDelivery:
    """Return a delivery with what its person has answered to a hidden question, too."""
    question, record = one.history.question, one.recipient
    if question is None or not question.is_hidden:
        return one
    row = (await request.services.core.answers.rows(one.history.key, request.tenant)).get(id_text(record.id))
    return one._replace(recipient=replace(record, answer=RecipientAnswer(row.state, row))) if row else one


async def _threads(request: ApiRequest) -> AsyncIterator[PersonExportLine]:
    """Emit the threads of the person, each followed by its messages, newest first."""
    threads = request.services.core.threads
    for name in await threads.of_person(request.tenant, request.part("id")):
        try:
            thread = await threads.find(request.tenant, name)
        except NotFound:  # its retention has ended
            continue
        yield PersonExportLine(thread=ThreadView.of(thread))
        async for message in _messages(request, thread):
            yield PersonExportLine(message=message)


async def _inbox(request: ApiRequest, user: User) -> AsyncIterator[PersonExportLine]:
    """Emit the threads of the person's own inbox, each followed by its messages, newest first."""
    threads, inbox, cursor = request.services.core.threads, Inbox(USER, id_text(user.id)), None
    while True:
        found, cursor = await threads.page(request.tenant, inbox, cursor, _AT_ONCE)
        for thread in found:
            yield PersonExportLine(thread=ThreadView.of(thread))
            async for message in _messages(request, thread):
                yield PersonExportLine(message=message)
        if cursor is None:
            return


async def _remembered(request: ApiRequest, user: User) -> AsyncIterator[PersonExportLine]:
    """Emit the variables and the answers to forms that bots have stored of the person, by its contacts."""
    forms = Forms(request.services.core.store)
    for channel, addresses in user.contacts.items():
        for address in addresses:
            stored = await forms.of_person(request.tenant, f"{channel}:{address}")
            if stored.variables or stored.forms:
                yield PersonExportLine(remembered=stored)


async def _messages(request: ApiRequest, thread: Thread) -> AsyncIterator[MessageView]:
    before = 0
    while found := await request.services.core.threads.messages(thread, before, _AT_ONCE):
        for one in found:
            yield MessageView.of(one)
        before = found[-1].number
        if before == 1:
            return


ROUTES: Routes = (
    Route("GET", "/v1/users/{id}/deliveries", "List what was sent to a person, newest first, with its outcomes",
          "manage", list_deliveries, 200, PersonDeliveryPage, query=PersonDeliveryQuery, headers=NEXT_PAGE,
          people=People.BY_SCOPE),
    Route("GET", "/v1/users/{id}/export", "Download what is stored of a person: its threads, inbox and deliveries, too",
          "admin", export, 200, ndjson.CONTENT_TYPE),
)  # fmt: skip
