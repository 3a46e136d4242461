"""The histories of deliveries: one with a page of its recipients, and the list of all."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, replace

from core.admission.quotas import ADMIN
from core.deliveries.histories.listing import SentMessage
from core.model import delivery, history
from core.model.clock import write_optional_time, write_time
from core.model.field_types import Label, Name, ShortText, whole
from core.model.history import History, RecipientRecord
from core.model.history_key import Id
from core.model.hours import QuietHours
from core.model.json_form import JsonObject
from core.model.people import id_text
from core.model.question import Question
from core.model.states import DeliveryState, Status, Verdict
from core.model.text import characters
from core.model.text.characters import nfc
from core.uploads import not_found
from delivery.api.deliveries.chat_members import with_names_of_uninformed
from delivery.api.deliveries.content import ContentResponse
from delivery.api.deliveries.questions import AnswerCounts, AnswerView, QuestionView, RemindersView
from delivery.http.action_log import reason_of, write_reading
from delivery.http.context import ApiRequest, Request, Response, next_page_link
from delivery.http.fields import Limit, RequestModel, Time, cursor_form, write_duration
from delivery.http.responses.downloads import OCTETS, send_content
from delivery.http.route import NEXT_PAGE, People, PlainRequest, Route, Routes


class OutcomeView(Struct):
    """The outcome for one recipient in one channel. Before the first attempt there is only the status.

    `not_shown`: what the channel could not show of the delivery; absent if it showed everything. `detail`: what the
    provider said, in one line, without secrets; absent if nothing is known. `parts`: in how many it was paid, all
    attempts together; absent where nothing is paid in parts. `not_before`: when the hours begin in which the recipient
    wants messages; absent unless it waits for them.
    """

    status: Status
    reason: str | UnsetType | None = UNSET
    reference: str | UnsetType | None = UNSET
    attempts: int | UnsetType = UNSET
    at: str | UnsetType | None = UNSET
    not_shown: list[str] | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    parts: int | UnsetType = UNSET
    not_before: str | UnsetType = UNSET

    @classmethod
    def of(cls, record: history.OutcomeRecord) -> "OutcomeView":
        not_before = write_optional_time(record.not_before) or UNSET
        if not record.version and record.at is None:
            return cls(record.status, record.reason or UNSET, not_before=not_before)
        known = record.status, record.reason, record.reference, record.attempts, write_optional_time(record.at)
        optional = list(record.not_shown) or UNSET, record.detail or UNSET, record.parts or UNSET, not_before
        return cls(*known, *optional)


class ReminderView(Struct):
    """The outcome of a reminder for one recipient. `wave`: which one, from 1."""

    wave: int
    channel: str
    status: Status
    reason: str | None
    attempts: int
    at: str | None

    @classmethod
    def of(cls, record: history.ReminderRecord) -> "ReminderView":
        outcome = record.outcome
        at = write_optional_time(outcome.at)
        return cls(record.wave, record.channel, outcome.status, outcome.reason, outcome.attempts, at)


class ChildView(Struct):
    """A child. `name`: null if it has none, or its data were deleted."""

    id: Id
    name: str | None


class RecipientHistory(Struct):
    """One recipient with the outcome in every channel. `received_in`: the channels that reached the recipient. `text`:
    its own one, of a personal text; otherwise absent. `answer`: absent if the delivery asks nothing. `children`: about
    whom a guardian got the message; absent for others.
    """

    id: Id
    name: str | None
    origin: list[str]
    received_in: list[str]
    outcomes: dict[str, OutcomeView]
    text: str | UnsetType = UNSET
    answer: AnswerView | UnsetType = UNSET
    reminders: list[ReminderView] | UnsetType = UNSET
    children: list[ChildView] | UnsetType = UNSET

    @classmethod
    def of(cls, record: history.RecipientRecord, question: Question | None = None) -> "RecipientHistory":
        answer, reminders = answer_of(record, question), reminders_of(record)
        return cls(*recipient_fields(record), answer, reminders, children_of(record))


def recipient_fields(
    record: history.RecipientRecord,
) -> tuple[Id, str | None, list[str], list[str], dict[str, OutcomeView], str | UnsetType]:
    """Return the fields of `RecipientHistory`, but the answer."""
    outcomes = {channel: OutcomeView.of(outcome) for channel, outcome in record.outcomes.items()}
    text: str | UnsetType = UNSET if record.text is None else record.text
    return record.id, record.name, list(record.origin), list(record.received_in), outcomes, text


def children_of(record: history.RecipientRecord) -> list[ChildView] | UnsetType:
    return [ChildView(one.id, one.name) for one in record.children] or UNSET


def reminders_of(record: history.RecipientRecord) -> list[ReminderView] | UnsetType:
    return [ReminderView.of(one) for one in record.reminders] or UNSET


def answer_of(record: history.RecipientRecord, question: Question | None) -> AnswerView | UnsetType:
    return AnswerView.of(record.answer, question) if record.answer and question else UNSET


class DeliveryLink(Struct):
    """The other delivery of a follow-up. `of`: its recipients, `unreached` or `unanswered`."""

    id: str
    of: delivery.Following

    @classmethod
    def to(cls, link: history.HistoryLink) -> "DeliveryLink":
        return cls(link.key.id, link.of)


class DeliverySummary(Struct, kw_only=True):
    """A delivery without its recipients. `channels`: channel → `state`, and the number of outcomes per status.
    `content`: absent if the delivery has only a text. `personal`: the fields of a personal text; otherwise absent.
    `answer`, `answers`, `reminders`: its question, the totals and the reminders, absent if it asks nothing.
    `follows`: of a follow-up; otherwise absent. `followed_by`: its follow-ups, absent without one. `left_out`: people
    that a follow-up has left out since it was sent, because they needed it no more; otherwise absent.
    `texts`: by language, in place of `text`; absent without them. `refused_replies`: how many recipients have replied
    though `replies` is off; absent if nobody has. `uninformed`: of a delivery to guardians, those that got nothing;
    absent if there are none.
    `text_hidden`: true if it is the text of somebody else, which is read only with a reason; otherwise absent.
    """

    id: str
    history_key: str
    sender: JsonObject
    text: str
    origin: str
    state: DeliveryState
    version: int
    created_at: str
    deliver_at: str
    moved_from: str | None
    expires_at: str | None
    released_at: str | None
    finished_at: str | None
    verdict: Verdict
    counts: Mapping[str, int]
    channels: dict[str, dict[str, str | int]]
    reported: int
    kind: str
    tags: list[str]
    lane: str | None
    priority: int
    strategy: delivery.Strategy
    wait: str | None
    content: ContentResponse | UnsetType = UNSET
    personal: list[str] | UnsetType = UNSET
    answer: QuestionView | UnsetType = UNSET
    answers: AnswerCounts | UnsetType = UNSET
    reminders: RemindersView | UnsetType = UNSET
    follows: DeliveryLink | UnsetType = UNSET
    followed_by: list[DeliveryLink] | UnsetType = UNSET
    left_out: int | UnsetType = UNSET
    texts: Mapping[str, str] | UnsetType = UNSET
    refused_replies: int | UnsetType = UNSET
    uninformed: Sequence[delivery.Uninformed] | UnsetType = UNSET
    text_hidden: bool | UnsetType = UNSET

    @classmethod
    def of(
        cls, delivery: history.History, quiet_hours: QuietHours | None, *, is_hidden: bool = False
    ) -> "DeliverySummary":
        shown = without_texts(delivery) if is_hidden else delivery
        follows, asked = shown.follows, shown.question if shown.answers is not None else None
        return DeliverySummary(
            id=shown.key.id,
            history_key=str(shown.key),
            sender=shown.sender,
            text=shown.text,
            origin=shown.origin,
            state=shown.state,
            version=shown.version,
            created_at=write_time(shown.created_at),
            deliver_at=write_time(shown.deliver_at),
            moved_from=write_optional_time(shown.moved_from),
            expires_at=write_optional_time(shown.expires_at),
            released_at=write_optional_time(shown.released_at),
            finished_at=write_optional_time(shown.finished_at),
            verdict=shown.verdict,
            counts=shown.counts,
            channels={name: _channel(one) for name, one in shown.channels.items()},
            reported=shown.reported,
            kind=shown.kind,
            tags=list(shown.tags),
            lane=shown.lane,
            priority=shown.priority,
            strategy=shown.strategy,
            wait=None if shown.wait is None else write_duration(shown.wait),
            content=ContentResponse.of(shown.content) if shown.content is not None else UNSET,
            personal=list(shown.personal) or UNSET,
            answer=QuestionView.of(asked) if asked else UNSET,
            answers=AnswerCounts.of(shown.answers) if asked and shown.answers else UNSET,
            reminders=RemindersView.of(shown.reminders, quiet_hours) if asked else UNSET,
            follows=DeliveryLink.to(follows) if follows else UNSET,
            followed_by=[DeliveryLink.to(one) for one in shown.followed_by] or UNSET,
            left_out=shown.left_out or UNSET,
            texts=shown.texts or UNSET,
            refused_replies=shown.refused_replies or UNSET,
            uninformed=shown.uninformed or UNSET,
            text_hidden=is_hidden or UNSET,
        )


def _channel(record: history.ChannelRecord) -> dict[str, str | int]:
    return {"state": record.state, **{status.value: count for status, count in record.counts.items()}}


class HistoryResponse(DeliverySummary, kw_only=True):
    """A delivery with one page of its recipients. `next`: the cursor of the next page."""

    recipients: list[RecipientHistory]
    next: str | None

    @classmethod
    def of(
        cls, delivery: history.History, quiet_hours: QuietHours | None, *, is_hidden: bool = False
    ) -> "HistoryResponse":
        summary = asdict(DeliverySummary.of(delivery, quiet_hours, is_hidden=is_hidden))
        shown = without_texts(delivery) if is_hidden else delivery
        recipients = [RecipientHistory.of(one, shown.question) for one in shown.recipients]
        return cls(**summary, recipients=recipients, next=delivery.next)


class DeliveryPage(Struct):
    """A page of deliveries, newest first. `next`: the cursor of the next page."""

    deliveries: list[DeliverySummary]
    next: str | None

    @classmethod
    def of(cls, histories: Iterable[history.History], cursor: str | None, request: ApiRequest) -> "DeliveryPage":
        hours, acts_for = quiet_hours_of(request), request.identity.acts_for
        listed = [DeliverySummary.of(one, hours, is_hidden=not acts_for(one.key.sender)) for one in histories]
        return cls(listed, cursor)


def quiet_hours_of(request: ApiRequest) -> QuietHours | None:
    return request.services.core.sending.quiet_hours(request.tenant)


Position = Annotated[str, cursor_form("[0-9]{1,9}")]
ListCursor = Annotated[str, cursor_form(f"[0-9]{{1,15}}-[0-9]{{1,5}}-{characters.ONE}+")]


class HistoryQuery(RequestModel, frozen=True):
    """The page of recipients."""

    cursor: Position | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=10_000, extra_json_schema={"default": 100})] | UnsetType = UNSET


SentMessageName = Annotated[
    str,
    Meta(
        max_length=600,
        pattern=whole("[a-z0-9-]+:[^:]+:.+"),
        description="one message of the delivery: channel, address of the recipient and the provider's id, with colons",
    ),
]


class DeliveryQuery(RequestModel, frozen=True):
    """The filter and the page of a list of deliveries."""

    sender: Name | UnsetType = UNSET
    tag: ShortText | UnsetType = UNSET
    state: DeliveryState | UnsetType = UNSET
    verdict: Verdict | UnsetType = UNSET
    text: Annotated[Label, Meta(description="a part of the text")] | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    message: SentMessageName | UnsetType = UNSET
    cursor: ListCursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


async def show(request: Request[None, HistoryQuery]) -> Response:
    """Return the history, with one page of its recipients. An administrator sees the text of somebody else only with
    a reason.
    """
    query = request.query
    history = await request.services.core.deliveries.read(
        request.history_key, request.tenant, query.cursor or None, query.limit or 100
    )
    hidden = await is_hidden(request, "GET /v1/deliveries/{id}")
    history = replace(history, uninformed=await with_names_of_uninformed(request, history.uninformed))
    shown = HistoryResponse.of(history, quiet_hours_of(request), is_hidden=hidden)
    return Response(shown, headers=next_page_link(request.http, history.next))


async def show_file(request: PlainRequest) -> web.StreamResponse:
    """Return an uploaded file that the delivery attaches. An administrator sees that of somebody else only with a
    reason.
    """
    history = await request.services.core.deliveries.read(request.history_key, request.tenant, limit=1)
    wanted, attached = request.part("file"), history.content.attachments if history.content else ()
    name = next((one.name for one in attached if one.file == wanted), None)
    if name is None or await is_hidden(request, "GET /v1/deliveries/{id}/files/{file}"):
        raise not_found(wanted)
    return await send_content(request, wanted, name)


async def list_page(request: Request[None, DeliveryQuery]) -> Response:
    """Return one page of deliveries, newest first. A person finds only its own by their text."""
    query, person = request.query, request.identity.person
    is_own = person is not None and (person.role != ADMIN or bool(query.text))
    if is_own and query.sender:
        request.check_own(query.sender, "sender")
    histories, cursor = await request.services.core.deliveries.list(
        request.tenant,
        sender=id_text(person.id) if person and is_own else nfc(query.sender or "") or None,
        tag=nfc(query.tag) if query.tag else None,
        state=query.state or None,
        verdict=query.verdict or None,
        text=query.text or None,
        since=request.time(query.since, "since"),
        until=request.time(query.until, "until"),
        message=SentMessage(*query.message.split(":", 2)) if query.message else None,
        cursor=query.cursor or None,
        limit=query.limit or 100,
    )
    return Response(DeliveryPage.of(histories, cursor, request), headers=next_page_link(request.http, cursor))


ROUTES: Routes = (
    Route("GET", "/v1/deliveries", "List deliveries, newest first", "read", list_page, 200, DeliveryPage,
          query=DeliveryQuery, headers=NEXT_PAGE, people=People.OWN),
    Route("GET", "/v1/deliveries/{id}", "The history of a delivery: its outcome for every recipient and channel",
          "read", show, 200, HistoryResponse, query=HistoryQuery, headers=NEXT_PAGE, people=People.OWN),
    Route("GET", "/v1/deliveries/{id}/files/{file}", "Download an uploaded file that a delivery attaches", "read",
          show_file, 200, OCTETS, people=People.OWN),
)  # fmt: skip


def without_texts(history: History) -> History:
    """Return the history without its text, fields, content and question, and without the texts and answers of its
    recipients.
    """
    recipients = recipients_without_texts(history.recipients)
    hidden = replace(history, text="", texts={}, personal=(), content=None, question=None, answers=None)
    return replace(hidden, recipients=recipients)


def recipients_without_texts(recipients: Sequence[RecipientRecord]) -> Sequence[RecipientRecord]:
    return [replace(one, text=None, answer=None) for one in recipients]


async def is_hidden(request: ApiRequest, what: str) -> bool:
    """Return whether the text of the delivery is hidden from the caller; with a reason it is not, and the reading is
    written down as `what`. Raises StoreError if it cannot be.
    """
    if request.identity.acts_for(request.history_key.sender):
        return False
    if not reason_of(request.http):
        return True
    await write_reading(what, request)
    return False
