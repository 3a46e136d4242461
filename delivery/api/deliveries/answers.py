"""Answers to the question of a delivery: a table by person with totals, CSV, entering on behalf, closing."""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Literal

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from core.admission.quotas import ADMIN
from core.answers.open_questions import NobodyReminded
from core.answers.values import MOST_CHARACTERS
from core.deliveries.histories.recipient_search import RecipientFilter
from core.deliveries.histories.recipient_search import RecipientPage as Page
from core.errors import Conflict, Forbidden, Invalid, NotFound
from core.model.clock import write_time
from core.model.field_types import IdField, Label
from core.model.history import History, RecipientRecord
from core.model.history_key import Id
from core.model.people import id_text
from core.model.question import (
    AnswerRow,
    AnswerState,
    Question,
    RecipientAnswer,
    shown_row,
)
from core.model.text.text_marks import plain_text
from core.model.text.text_parts import beginning_of
from core.model.user_files import safe_name
from core.sentence import say
from delivery.api.deliveries.chat_members import with_called, with_names
from delivery.api.deliveries.questions import AnswerCounts, AnswerView, QuestionView
from delivery.http.action_log import reason_of, write_reading
from delivery.http.context import ApiRequest, Request, Response, next_page_link
from delivery.http.fields import Limit, RequestModel, Time, cursor_form
from delivery.http.responses.downloads import (
    CONTENT_TYPE,
    OCTETS,
    ForExcel,
    RawFormat,
    Rows,
    console_word,
    console_words,
    is_for_excel,
    local_time,
    respond_csv,
    send_content,
)
from delivery.http.route import NEXT_PAGE, NoParameters, People, PlainRequest, Repeats, Route, Routes


class AnsweredRecipient(Struct):
    """A recipient and its answer. `received_in`: the channels that reached it. `member`: true for the member of a group
    chat that has answered there, and for a child that its guardians are asked about; otherwise absent.
    """

    id: Id
    name: str | None
    received_in: Sequence[str]
    answer: AnswerView
    member: bool | UnsetType = UNSET

    @classmethod
    def of(cls, record: RecipientRecord, question: Question) -> "AnsweredRecipient":
        assert record.answer
        view = AnswerView.of(record.answer, question)
        return cls(record.id, record.name, record.received_in, view, record.is_member or UNSET)


class AnswerPage(Struct):
    """A page of recipients, those not reached first. It may be short although there is a `next` one."""

    question: QuestionView
    answers: AnswerCounts
    recipients: list[AnsweredRecipient]
    next: str | None

    @classmethod
    def of(cls, asked: History, page: Page) -> "AnswerPage":
        assert asked.question
        assert asked.answers
        recipients = [AnsweredRecipient.of(one, asked.question) for one in page.recipients]
        return cls(QuestionView.of(asked.question), AnswerCounts.of(asked.answers), recipients, page.next)


class AnswerFilterQuery(RequestModel, frozen=True):
    """Selects recipients: by the `state` of the question, `option`: the key that they have chosen, `q`: a part of the
    name or id, `conflict`: children whose guardians differ.
    """

    state: AnswerState | UnsetType = UNSET
    option: Label | UnsetType = UNSET
    q: Label | UnsetType = UNSET
    conflict: Literal["yes"] | UnsetType = UNSET

    def wanted(self) -> RecipientFilter:
        return RecipientFilter(
            text=self.q or "",
            answer=self.state or None,
            option=self.option or "",
            conflict=bool(self.conflict),
            members=True,
        )


class AnswerExportQuery(AnswerFilterQuery, frozen=True):
    """The form of the file, and which recipients. `language`: a table for people, in the words and times of the
    console; `format=raw` leaves it out.
    """

    excel: ForExcel | UnsetType = UNSET
    format: RawFormat | UnsetType = UNSET
    language: Literal["ru", "en"] | UnsetType = UNSET

    @property
    def for_excel(self) -> bool:
        return not self.format and is_for_excel(self.excel)


class AnswerQuery(AnswerFilterQuery, frozen=True):
    """The filter and the page of a list of answers."""

    cursor: Annotated[str, cursor_form("[nr][0-9]{1,9}")] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class AnswerOnBehalf(RequestModel, frozen=True):
    """An answer that somebody enters for a recipient. `value`: the key of an option, a text, a number, a date, or the
    id of an uploaded file.
    """

    recipient: IdField
    value: Annotated[str, Meta(min_length=1, max_length=MOST_CHARACTERS)]


class AnswerFileQuery(RequestModel, frozen=True):
    """Selects the file of a recipient, by its id."""

    recipient: Label


class AnswerCounted(Struct):
    """The effect of an answer: answered, changed, late; same, closed, final, many: the answer before stays."""

    result: str
    answer: AnswerView


class Reminded(Struct):
    """A reminder by hand goes out. `people`: to how many. `reason`: why to nobody, and `detail`: the same in words;
    absent if it goes to somebody.
    """

    people: int
    reason: Literal["again"] | NobodyReminded | UnsetType = UNSET
    detail: str | UnsetType = UNSET


class ReopenRequest(RequestModel, frozen=True):
    """Until when a question is open again; without a time, until it is closed by hand."""

    until: Time | UnsetType | None = UNSET


class QuestionTotals(Struct):
    """The totals of a question that was closed, or opened again."""

    answers: AnswerCounts


_COLUMNS = (
    *("recipient", "name", "state", "value", "text", "at", "by", "who", "channel", "revisions", "note", "waiting"),
    *("conflict", "voices"),
)
_TITLES = (
    *("people.id", "message.person", "message.state", "message.answer", "message.note", "message.when"),
    "costs.channel",
)


async def list_page(request: Request[None, AnswerQuery]) -> Response:
    """Return one page of a delivery's recipients with their answers."""
    query, recipients = request.query, request.services.core.deliveries.recipients
    asked, _ = await _asked(request)
    page = await recipients.page(
        request.senders_history_key,
        request.tenant,
        await with_called(request, query.wanted()),
        query.cursor or None,
        query.limit or 100,
    )
    opened = await _opened(request, asked.question)
    people = [_with_row(one, opened) for one in await with_names(request, page.recipients)]
    page = page._replace(recipients=people)
    return Response(AnswerPage.of(asked, page), headers=next_page_link(request.http, page.next))


async def export(request: Request[None, AnswerExportQuery]) -> web.StreamResponse:
    """Return one row for each recipient."""
    (asked, question), query = await _asked(request), request.query
    language = query.language if query.language and not query.format else ""
    name = f"{request.senders_history_key.id}.answers.csv"
    if language:
        zone = request.timezone
        day = local_time(asked.deliver_at, zone, language)[:10]
        name = f"{console_words(language)['message.answers']} {file_name_of(asked)} {day}.csv"
    return await respond_csv(request, name, _pages(request, question, language), for_excel=query.for_excel)


async def answer(request: Request[AnswerOnBehalf, NoParameters]) -> Response:
    body, sees_hidden = request.body, _sees_hidden(request)
    given = await request.services.core.answers.enter(
        request.senders_history_key,
        request.tenant,
        id_text(body.recipient),
        body.value,
        _who(request),
        secrets.token_hex(9),
        sees_hidden=sees_hidden,
    )
    if given.question.is_hidden and sees_hidden:
        await write_reading(f"read hidden answers of {request.history_key.id}", request)
    row = given.row if sees_hidden else shown_row(given.question, given.row)
    assert row
    return Response(AnswerCounted(given.result, AnswerView.of_row(row, given.question)))


async def show_file(request: Request[None, AnswerFileQuery]) -> web.StreamResponse:
    key, answers = request.senders_history_key, request.services.core.answers
    _, question = await _asked(request)
    if question.is_hidden and not await _opened(request, question):
        raise Forbidden("ANSWERS_HIDDEN", "Only an administrator sees them, with a reason in the header Ada-Reason.")
    return await send_content(request, *await answers.file(key, request.tenant, request.query.recipient))


async def close(request: PlainRequest) -> Response:
    """Close the question of a delivery. A repeat changes nothing."""
    await request.services.core.questions.close(request.senders_history_key, request.tenant)
    asked, _ = await _asked(request)
    assert asked.answers
    return Response(QuestionTotals(AnswerCounts.of(asked.answers)))


async def reopen(request: Request[ReopenRequest | None, NoParameters]) -> Response:
    """Open the question of a delivery again. A question that is open stays as it is."""
    await _asked(request)
    given = request.body.until if request.body else None
    until = request.time(given, "until")
    if until and until <= datetime.now(UTC):
        raise Invalid("UNTIL_PAST", f"{write_time(until)} has passed.", "until")
    await request.services.core.questions.reopen(request.senders_history_key, request.tenant, until)
    asked, _ = await _asked(request)
    assert asked.answers
    return Response(QuestionTotals(AnswerCounts.of(asked.answers)))


async def remind(request: PlainRequest) -> Response:
    _, question = await _asked(request)
    request.services.core.sending.check_quiet_hours(request.caller)
    result, people = await request.services.core.questions.remind(
        request.senders_history_key, request.tenant, by=_who(request)
    )
    match result:
        case "closed":
            raise Conflict("QUESTION_CLOSED", "The question is closed; nobody is reminded of it.")
        case "unsent":
            raise Conflict("NOT_RELEASED", "The delivery has not been sent yet.")
        case "enough":
            most = question.most_reminders
            raise Conflict("REMINDED_ENOUGH", f"This question allows {most} reminders, and they were sent.")
    if people:
        return Response(Reminded(people))
    key, questions = request.senders_history_key, request.services.core.questions
    reason = "again" if result == "again" else await questions.why_nobody(key, request.tenant)
    return Response(Reminded(people, reason, say(f"reminded_{reason}", "en")))


async def _opened(request: ApiRequest, question: Question | None) -> Mapping[str, AnswerRow]:
    """Return the answers to a hidden question, by recipient, for an administrator who gives a reason, which is written
    down; for others none. Raises StoreError.
    """
    if not (question and question.is_hidden and _sees_hidden(request)):
        return {}
    await write_reading(f"read hidden answers of {request.history_key.id}", request)
    return await request.services.core.answers.rows(request.history_key, request.tenant)


def _sees_hidden(request: ApiRequest) -> bool:
    """Return whether an administrator asks, and gives a reason."""
    person, key = request.identity.person, request.key
    is_admin = person.role == ADMIN if person else key.permits("admin")
    return is_admin and bool(reason_of(request.http))


def _with_row(record: RecipientRecord, opened: Mapping[str, AnswerRow]) -> RecipientRecord:
    row = opened.get(id_text(record.id))
    return replace(record, answer=RecipientAnswer(row.state, row)) if row else record


def _who(request: ApiRequest) -> str:
    """Return who enters an answer: a person that is signed in, or the name of an API key."""
    person = request.identity.person
    return id_text(person.id) if person else request.key.name


async def _asked(request: ApiRequest) -> tuple[History, Question]:
    """Return the delivery and its question. Raises NotFound HISTORY_NOT_FOUND, QUESTION_NOT_FOUND."""
    asked = await request.services.core.deliveries.read(request.senders_history_key, request.tenant, limit=1)
    if asked.question is None:
        raise NotFound("QUESTION_NOT_FOUND", "This delivery asks nothing.")
    return asked, asked.question


async def _pages(request: Request[None, AnswerExportQuery], question: Question, language: str) -> AsyncIterator[Rows]:
    titles = tuple(str(console_words(language)[key]) for key in _TITLES) if language else _COLUMNS
    zone = request.timezone
    rows: list[tuple[str, ...]] = [titles]
    recipients, wanted = request.services.core.deliveries.recipients, await with_called(request, request.query.wanted())
    opened = await _opened(request, question)
    async for page in recipients.all(request.senders_history_key, request.tenant, wanted):
        people = [_with_row(one, opened) for one in await with_names(request, page.recipients)]
        yield rows + [
            _row_for_people(one, question, language, zone) if language else _row(one, question) for one in people
        ]
        rows = []


def file_name_of(history: History) -> str:
    """Return the beginning of a delivery's text as a name of a file."""
    mode = history.content.parse_mode if history.content else None
    text = plain_text(history.text, mode) if mode else history.text
    return safe_name(beginning_of(text) or history.key.id)


def _row_for_people(record: RecipientRecord, question: Question, language: str, zone: tzinfo) -> tuple[str, ...]:
    assert record.answer
    one, row = AnswerView.of(record.answer, question), record.answer.row
    waits = f" ({console_words(language)['message.waits']})" if one.waiting is True else ""
    voices = ", ".join(f"{said.name or said.who}: {said.text}" for said in one.voices or ())
    differ = f" ({console_words(language)['message.conflict']}: {voices})" if one.conflict is True else ""
    said = f"{one.text or one.value or ''}{waits}{differ}"
    at = local_time(row.answered_at, zone, language) if row and row.at else ""
    channel = console_word("channel", one.channel, language) if one.channel else ""
    state = console_word("answer_state", one.state, language)
    return (str(record.id), record.name or "", state, said, one.note or "", at, channel)


def _row(record: RecipientRecord, question: Question) -> tuple[str, ...]:
    assert record.answer
    one = AnswerView.of(record.answer, question)
    known = (one.state, one.value or "", one.text or "", one.at or "", one.by or "", one.who or "", one.channel or "")
    revisions = "; ".join(f"{old.at} {old.value or old.text}" for old in one.revisions)
    waiting = "yes" if one.waiting is True else ""
    conflict = "yes" if one.conflict is True else ""
    voices = "; ".join(f"{said.who} {said.value}" for said in one.voices or ())
    return (str(record.id), record.name or "", *known, revisions, one.note or "", waiting, conflict, voices)


ROUTES: Routes = (
    Route("GET", "/v1/deliveries/{id}/answers", "List the answers to the question of a delivery, with totals", "read",
          list_page, 200, AnswerPage, query=AnswerQuery, headers=NEXT_PAGE, people=People.OWN),
    Route("GET", "/v1/deliveries/{id}/answers.csv", "Export the answers to the question of a delivery as CSV", "read",
          export, 200, CONTENT_TYPE, query=AnswerExportQuery, people=People.OWN),
    Route("POST", "/v1/deliveries/{id}/answers", "Enter an answer on behalf of a recipient", "send",
          answer, 200, AnswerCounted, body=AnswerOnBehalf, repeats=Repeats.STORED, people=People.OWN),
    Route("GET", "/v1/deliveries/{id}/answers/file", "Download the file that a recipient has answered with", "read",
          show_file, 200, OCTETS, query=AnswerFileQuery, people=People.OWN),
    Route("POST", "/v1/deliveries/{id}/answers:remind", "Remind those who have not answered the question of a delivery",
          "send", remind, 200, Reminded, repeats=Repeats.STORED, people=People.OWN),
    Route("POST", "/v1/deliveries/{id}/answers:close", "Close the question of a delivery: later answers are late",
          "send", close, 200, QuestionTotals, repeats=Repeats.STORED, people=People.OWN),
    Route("POST", "/v1/deliveries/{id}/answers:reopen", "Open the closed question of a delivery again", "send",
          reopen, 200, QuestionTotals, body=ReopenRequest, body_is_optional=True, repeats=Repeats.STORED,
          people=People.OWN),
)  # fmt: skip
