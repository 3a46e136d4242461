"""Messages and costs of the tenant, by month, channel and sender: as a list, and as a table."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType, field

from core.admission.quotas import ADMIN
from core.deliveries.costs import Cost, totals
from core.model.field_types import whole
from core.model.people import id_text
from delivery.http.context import Request, Response, next_page_link
from delivery.http.fields import Limit, RequestModel, cursor_form
from delivery.http.responses.downloads import (
    CONTENT_TYPE,
    ForExcel,
    RawFormat,
    Rows,
    console_word,
    console_words,
    is_for_excel,
    respond_csv,
)
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NEXT_PAGE, People, Route, Routes

MONTHS = 36
"""Months that are kept."""
_SHOWN = 12
_COLUMNS = ("month", "channel", "sender", "name", "messages", "parts", "sum", "unpriced")
_TITLES = ("costs.month", "costs.channel", "people.id", "costs.sender", "costs.messages", "costs.parts")

Month = Annotated[str, Meta(pattern=whole("20[0-9]{2}-(0[1-9]|1[0-2])"), description="a month of UTC, such as 2026-11")]
Position = Annotated[str, cursor_form("[0-9]{1,9}")]


class MonthQuery(RequestModel, frozen=True):
    """The months: at most 36, by default this one and the eleven before."""

    first: Month | UnsetType = field(name="from", default=UNSET)
    last: Month | UnsetType = field(name="until", default=UNSET)


class CostQuery(MonthQuery, frozen=True):
    """The months, and the page of senders."""

    cursor: Position | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class CostTableQuery(MonthQuery, frozen=True):
    """The months, and the form of the file."""

    excel: ForExcel | UnsetType = UNSET
    format: RawFormat | UnsetType = UNSET
    language: Literal["ru", "en"] | UnsetType = UNSET


class CostView(Struct):
    """Messages over a channel in a month, of one sender or of all. A message counts that was sent or may have been.

    `parts`: what is paid, 0 if the channel is not paid in parts. `sums`: one for each currency, in the form of the
    price that was set when it was sent; empty without one. `unpriced`: parts that were sent while no price was set.
    `sender`, `name`: absent in a total. `name`: null if the directory does not know the sender.
    """

    month: str
    channel: str
    messages: int
    parts: int
    sums: Sequence[str]
    unpriced: int
    sender: str | UnsetType = UNSET
    name: str | UnsetType | None = UNSET

    @classmethod
    def of(cls, cost: Cost, name: str | UnsetType | None = UNSET) -> "CostView":
        counts = cost.month, cost.channel, cost.messages, cost.parts, cost.sums, cost.unpriced
        return cls(*counts, cost.sender or UNSET, name)


class CostPage(Struct):
    """The newest month first. `totals`: of all senders, the same on each page. `next`: the cursor of the next page."""

    totals: list[CostView]
    costs: list[CostView]
    next: str | None


async def list_page(request: Request[None, CostQuery]) -> Response:
    """Return the costs of the tenant; a person that is not its administrator gets its own."""
    found = await _costs(request, request.query)
    start, limit = int(request.query.cursor or 0), request.query.limit or 100
    cursor = str(start + limit) if start + limit < len(found) else None
    shown = await _named(request, found[start : start + limit])
    page = CostPage([CostView.of(one) for one in totals(found)], shown, cursor)
    return Response(page, headers=next_page_link(request.http, cursor))


async def export(request: Request[None, CostTableQuery]) -> web.StreamResponse:
    """Return all costs of these months as CSV: in the words of the console, or in the form for programs."""
    query = request.query
    language = query.language if query.language and not query.format else ""
    name = f"{console_words(language)['page.costs']}.csv" if language else "costs.csv"
    is_excel = not query.format and is_for_excel(query.excel)
    return await respond_csv(request, name, _pages(request, language), for_excel=is_excel)


async def _pages(request: Request[None, CostTableQuery], language: str) -> AsyncIterator[Rows]:
    found = await _costs(request, request.query)
    words = console_words(language) if language else {}
    titles = [str(words[key]) for key in (*_TITLES, "costs.sum", "costs.unpriced")] if language else _COLUMNS
    yield [titles]
    for start in range(0, len(found), 1000):
        yield [_row(one, language) for one in await _named(request, found[start : start + 1000])]


def _row(cost: CostView, language: str) -> Sequence[str]:
    channel = console_word("channel", cost.channel, language) if language else cost.channel
    sums = ", ".join(cost.sums)
    paid = [str(cost.parts), sums.replace(".", ",") if language == "ru" else sums, str(cost.unpriced)]
    own = console_words(language).get(f"sender.{cost.sender}", "") if language else ""
    return [cost.month, channel, cost.sender or "", cost.name or str(own), str(cost.messages), *paid]


async def _costs(request: Request[None, CostQuery] | Request[None, CostTableQuery], query: MonthQuery) -> list[Cost]:
    found = await request.services.core.deliveries.costs.read(request.tenant, _months(query))
    person = request.identity.person
    if person is None or person.role == ADMIN:
        return found
    return [one for one in found if one.sender == id_text(person.id)]


def _months(query: MonthQuery) -> list[str]:
    """Return the wanted months, the newest first. Raises InvalidFields TIME_OUT_OF_RANGE."""
    now = datetime.now(UTC)
    last = _number(query.last) if query.last else now.year * 12 + now.month - 1
    first = _number(query.first) if query.first else last - _SHOWN + 1
    if not 0 <= last - first < MONTHS:
        detail = f"From the first month until the last there are 1 to {MONTHS}."
        raise invalid_field("from", "TIME_OUT_OF_RANGE", detail)
    return [f"{one // 12}-{one % 12 + 1:02}" for one in range(last, first - 1, -1)]


def _number(month: str) -> int:
    year, _, of_year = month.partition("-")
    return int(year) * 12 + int(of_year) - 1


async def _named(
    request: Request[None, CostQuery] | Request[None, CostTableQuery], costs: Sequence[Cost]
) -> list[CostView]:
    senders = list({one.sender: None for one in costs})
    people = await request.services.core.directory.users.lookup(request.tenant, senders)
    names = {sender: one.name if one else None for sender, one in zip(senders, people, strict=True)}
    return [CostView.of(one, names[one.sender]) for one in costs]


ROUTES: Routes = (
    Route("GET", "/v1/costs", "What was sent and is paid, by month, channel and sender", "read", list_page, 200,
          CostPage, query=CostQuery, headers=NEXT_PAGE, people=People.OWN),
    Route("GET", "/v1/costs.csv", "Export what was sent and is paid, by month, channel and sender, as CSV", "read",
          export, 200, CONTENT_TYPE, query=CostTableQuery, people=People.OWN),
)  # fmt: skip
