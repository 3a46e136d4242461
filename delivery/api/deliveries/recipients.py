"""The recipients of one delivery: as pages, as CSV, why people were not reached, and what the providers said.

The CSV has two forms: for programs a row for each channel; for people (W-26) a row for each recipient, in the words and
times of the console.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Annotated, Literal

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from core.deliveries.delivery_reports import Exchange
from core.deliveries.histories import recipient_search
from core.deliveries.histories.recipient_search import RecipientFilter, why_not_reached
from core.model import history
from core.model.clock import from_ms, write_optional_time, write_time
from core.model.field_types import Label, ShortText
from core.model.history import History, OutcomeRecord, RecipientRecord
from core.model.question import AnswerState, Question
from core.model.states import Reason, Status
from core.model.text.characters import nfc
from delivery.api.deliveries.answers import file_name_of
from delivery.api.deliveries.chat_members import with_called, with_names
from delivery.api.deliveries.histories import (
    RecipientHistory,
    answer_of,
    children_of,
    is_hidden,
    recipient_fields,
    recipients_without_texts,
    reminders_of,
    without_texts,
)
from delivery.http.context import ApiRequest, Request, Response, next_page_link
from delivery.http.fields import Limit, RequestModel, cursor_form
from delivery.http.responses.downloads import (
    CONTENT_TYPE,
    ForExcel,
    RawFormat,
    Rows,
    console_word,
    console_words,
    is_for_excel,
    local_time,
    respond_csv,
)
from delivery.http.route import NEXT_PAGE, People, PlainRequest, Route, Routes

_OUTCOME_COLUMNS = (
    "recipient",
    "name",
    "origin",
    "channel",
    "status",
    "reason",
    "at",
    "attempts",
    "reference",
    "not_shown",
    "text",
    "detail",
)
_PERSON = ("people.id", "message.person", "page.groups", "message.state")


class RecipientFilterQuery(RequestModel, frozen=True):
    """Selects recipients. `status`, `reason` and `channel` are of one outcome; `q`: a part of the name or id; `why`:
    why one was not reached, as the list says it; `answer`: the state of the question, `conflict`: children whose
    guardians differ; then the members of group chats who have answered, and children, are listed as well.
    """

    status: Status | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET
    channel: ShortText | UnsetType = UNSET
    q: Label | UnsetType = UNSET
    why: ShortText | UnsetType = UNSET
    reached: Literal["yes", "no"] | UnsetType = UNSET
    answer: AnswerState | UnsetType = UNSET
    conflict: Literal["yes"] | UnsetType = UNSET

    def wanted(self) -> RecipientFilter:
        reached = self.reached == "yes" if self.reached else None
        return RecipientFilter(
            self.status or None,
            self.reason or "",
            self.channel or "",
            self.q or "",
            self.why or "",
            reached,
            self.answer or None,
            conflict=bool(self.conflict),
            members=bool(self.answer or self.conflict),
        )


class RecipientQuery(RecipientFilterQuery, frozen=True):
    """The filter and the page of a list of recipients."""

    cursor: Annotated[str, cursor_form("[nr][0-9]{1,9}")] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class OutcomeExportQuery(RecipientFilterQuery, frozen=True):
    """The form of the file, and which recipients. `language`: a table for people, with one row for each recipient in
    the words of the console; without it, one for programs, with a row for each recipient and channel.
    """

    excel: ForExcel | UnsetType = UNSET
    format: RawFormat | UnsetType = UNSET
    language: Literal["ru", "en"] | UnsetType = UNSET

    @property
    def for_excel(self) -> bool:
        return not self.format and is_for_excel(self.excel)


class ListedRecipient(RecipientHistory, kw_only=True):
    """A recipient. `why`: why it was not reached: a reason, a status, `waiting`, or `later`; null if it was. `member`:
    true for the member of a group chat that has answered there and is no recipient itself; otherwise absent. `child`:
    true for such a one that guardians are asked about.
    """

    why: str | None = None
    member: bool | UnsetType = UNSET
    child: bool | UnsetType = UNSET

    @classmethod
    def of(cls, record: history.RecipientRecord, question: Question | None = None) -> "ListedRecipient":
        answer, reminders = answer_of(record, question), reminders_of(record)
        why, member = why_not_reached(record), record.is_member or UNSET
        return cls(
            *recipient_fields(record),
            answer,
            reminders,
            children_of(record),
            why=why,
            member=member,
            child=record.is_child or UNSET,
        )


class ListedRecipients(Struct):
    """A page of recipients, those not reached first. It may be short although there is a `next` one."""

    recipients: list[ListedRecipient]
    next: str | None

    @classmethod
    def of(cls, page: recipient_search.RecipientPage, *, is_hidden: bool) -> "ListedRecipients":
        found = recipients_without_texts(page.recipients) if is_hidden else page.recipients
        return cls([ListedRecipient.of(one, page.question) for one in found], page.next)


class Reasons(Struct):
    """Reasons why people were not reached → how many, most frequent first. `waiting`: a channel may still reach them;
    `later`: it does so in hours of their own.
    """

    not_reached: int
    reasons: dict[str, int]


async def list_recipients(request: Request[None, RecipientQuery]) -> Response:
    """Return one page of a delivery's recipients, those not reached first."""
    query = request.query
    page = await request.services.core.deliveries.recipients.page(
        request.history_key,
        request.tenant,
        await with_called(request, query.wanted()),
        query.cursor or None,
        query.limit or 100,
    )
    page = page._replace(recipients=await with_names(request, page.recipients))
    hidden = await is_hidden(request, "GET /v1/deliveries/{id}/recipients")
    return Response(ListedRecipients.of(page, is_hidden=hidden), headers=next_page_link(request.http, page.next))


async def show_reasons(request: PlainRequest) -> Response:
    """Return why people were not reached, and how many."""
    reasons = await request.services.core.deliveries.recipients.reasons(request.history_key, request.tenant)
    return Response(Reasons(sum(reasons.values()), dict(reasons)))


OutcomeExportRequest = Request[None, OutcomeExportQuery]


async def export_recipients(request: OutcomeExportRequest) -> web.StreamResponse:
    """Return the outcomes of a delivery, those not reached first: one row for each recipient and channel, or with
    `language` for each recipient.
    """
    query, hidden = request.query, await is_hidden(request, "GET /v1/deliveries/{id}/recipients.csv")
    if query.language and not query.format:
        history = await request.services.core.deliveries.read(request.history_key, request.tenant, limit=1)
        zone = request.timezone
        table = OutcomeTable(without_texts(history) if hidden else history, query.language, zone)
        return await respond_csv(
            request,
            table.name,
            table_rows(request, table, await with_called(request, query.wanted())),
            for_excel=query.for_excel,
        )
    name = f"{request.history_key.id}.csv"
    return await respond_csv(request, name, _outcome_pages(request, hidden), for_excel=query.for_excel)


async def _outcome_pages(request: OutcomeExportRequest, is_hidden: bool) -> AsyncIterator[Rows]:
    """Yield pages of outcomes, the header with the first, without the texts of recipients if they are hidden."""
    rows: list[tuple[str, ...]] = [_OUTCOME_COLUMNS]
    recipients, wanted = request.services.core.deliveries.recipients, await with_called(request, request.query.wanted())
    async for page in recipients.all(request.history_key, request.tenant, wanted):
        people = await with_names(request, page.recipients)
        shown = recipients_without_texts(people) if is_hidden else people
        yield rows + [row for recipient in shown for row in _outcome_rows(recipient)]
        rows = []


def _outcome_rows(recipient: RecipientRecord) -> Iterator[tuple[str, ...]]:
    person = (str(recipient.id), recipient.name or "", ", ".join(recipient.origin))
    for channel, outcome in recipient.outcomes.items():
        yield (*person, channel, *_outcome_cells(outcome), recipient.text or "", outcome.detail or "")


def _outcome_cells(outcome: OutcomeRecord) -> tuple[str, ...]:
    at, not_shown = write_optional_time(outcome.at) or "", ", ".join(outcome.not_shown)
    return (outcome.status, outcome.reason or "", at, str(outcome.attempts), outcome.reference or "", not_shown)


class ExchangeQuery(RequestModel, frozen=True):
    """The recipient, by its id."""

    recipient: Annotated[Label, Meta(min_length=1)]


class ProviderCallView(Struct):
    """A call to the provider. `status`: the provider's number (of HTTP, SMTP or an error of Telegram), 0 without an
    answer. `words`: the provider's own, empty if the call succeeded or carried other messages, too. `after_ms`: since
    the attempt began. `took_ms`: with the wait for a connection.
    """

    method: str
    status: int
    words: str
    after_ms: int
    took_ms: int


class ExchangeView(Struct):
    """An attempt that failed, or one behind it. `times`: how many in a row ended in the same way; this is the last of
    them. `outcome`: sent, rejected, deferred, unknown or halted. `detail`: what the provider said of this message.
    """

    channel: str
    contact: int
    at: str
    outcome: str
    reason: str
    detail: str
    times: int
    calls: list[ProviderCallView]

    @classmethod
    def of(cls, one: Exchange) -> "ExchangeView":
        calls = [
            ProviderCallView(*(getattr(call, name) for name in call.__struct_fields__)) for call in one.attempt.calls
        ]
        attempt = one.attempt
        at = write_time(from_ms(attempt.at))
        return cls(one.channel, one.contact, at, attempt.outcome, attempt.reason, attempt.detail, one.times, calls)


class ExchangesResponse(Struct):
    """The providers' answers about one recipient, in the order of time: at most five lines for each contact."""

    exchanges: list[ExchangeView]


async def show_exchanges(request: Request[None, ExchangeQuery]) -> Response:
    """Return the attempts of the last seven days that failed, with each call. Texts, addresses and secrets are
    hidden.
    """
    found = await request.services.core.deliveries.exchanges.of_recipient(
        request.history_key, request.tenant, nfc(request.query.recipient)
    )
    return Response(ExchangesResponse([ExchangeView.of(one) for one in found]))


ROUTES: Routes = (
    Route("GET", "/v1/deliveries/{id}/recipients", "List the recipients of a delivery, those not reached first",
          "read", list_recipients, 200, ListedRecipients, query=RecipientQuery, headers=NEXT_PAGE, people=People.OWN),
    Route("GET", "/v1/deliveries/{id}/reasons", "Why people were not reached, and how many", "read", show_reasons,
          200, Reasons, people=People.OWN),
    Route("GET", "/v1/deliveries/{id}/recipients.csv", "Export the outcomes of a delivery as CSV", "read",
          export_recipients, 200, CONTENT_TYPE, query=OutcomeExportQuery, people=People.OWN),
    Route("GET", "/v1/deliveries/{id}/exchanges", "What the providers said about one recipient, for seven days",
          "admin", show_exchanges, 200, ExchangesResponse, query=ExchangeQuery, people=People.BY_SCOPE),
)  # fmt: skip


class OutcomeTable:
    """The table of one delivery."""

    def __init__(self, history: History, language: str, zone: tzinfo) -> None:
        self._language, self._zone = language, zone
        self._channels = list(history.channels)
        self._is_personal = bool(history.personal or history.texts)
        self.name = f"{file_name_of(history)} {self._time(history.deliver_at)[:10]}.csv"

    def _time(self, at: datetime) -> str:
        return local_time(at, self._zone, self._language)

    def header(self) -> Sequence[str]:
        words = console_words(self._language)
        channels = [console_word("channel", one, self._language) for one in self._channels]
        own = [words["message.own_text"]] if self._is_personal else []
        return [*(str(words[key]) for key in _PERSON), *channels, *map(str, own)]

    def row(self, record: RecipientRecord, titles: Mapping[str, str]) -> Sequence[str]:
        """`titles`: of groups, by their ids."""
        why = why_not_reached(record)
        known = (
            console_word("why", why, self._language) if why else str(console_words(self._language)["message.reached"])
        )
        cells = [self._cell(record.outcomes[one]) for one in self._channels]
        own = [record.text or ""] if self._is_personal else []
        groups = ", ".join(titles.get(one, one) for one in record.origin)
        return [str(record.id), record.name or "", groups, known, *cells, *own]

    def _cell(self, outcome: OutcomeRecord) -> str:
        """Return an outcome with reason, provider's words and time; nothing where the person has no contact."""
        if outcome.status is Status.NO_CONTACT:
            return ""
        said = console_word("status", outcome.status, self._language)
        reason = f": {console_word('reason', outcome.reason, self._language)}" if outcome.reason else ""
        detail = f" ({outcome.detail})" if outcome.detail else ""
        if outcome.not_before:
            waits = str(console_words(self._language)["message.not_before"])
            return f"{said}: {waits.replace('{when}', self._time(outcome.not_before))}"
        return f"{said}{reason}{detail}{f', {self._time(outcome.at)}' if outcome.at else ''}"


async def table_rows(request: ApiRequest, table: OutcomeTable, wanted: RecipientFilter) -> AsyncIterator[Rows]:
    """Yield pages of rows, the header with the first."""
    rows, titles = [table.header()], dict[str, str]()
    async for page in request.services.core.deliveries.recipients.all(request.history_key, request.tenant, wanted):
        named = await with_names(request, page.recipients)
        new = list({group for one in named for group in one.origin} - titles.keys())
        groups = await request.services.core.directory.groups.lookup(request.tenant, new) if new else []
        titles |= {group: one.title or group for group, one in zip(new, groups, strict=True) if one}
        yield [*rows, *(table.row(record, titles) for record in named)]
        rows = []
