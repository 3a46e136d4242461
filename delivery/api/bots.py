"""The bot of a tenant: its version and problems, its scenarios as graphs, and a dry run; the forms that people have
filled in; the runs of its scenarios, with what became of each action, and what released or dropped it.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Literal

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, replace

from core.errors import NotFound
from core.model.content import Content, Display
from core.model.field_types import Label, ShortText, whole
from core.model.json_form import JsonValue, compact_json
from couriers.sending.shown import shown_in
from delivery.api.deliveries.preview import PreviewShown
from delivery.http.context import ApiRequest, Request, Response, next_page_link
from delivery.http.fields import RequestModel, Time, optional
from delivery.http.responses.downloads import CONTENT_TYPE, ExportQuery, Rows, respond_csv
from delivery.http.route import NEXT_PAGE, NoParameters, PlainRequest, Repeats, Route, Routes
from scenarios.inspection.bots import BotReader, BotView, DryRunAction, ListedBot
from scenarios.inspection.run_listing import RunFilter, RunSummary
from scenarios.inspection.runs import RunReader, RunView
from scenarios.inspection.scenario_graph import ScenarioGraph
from scenarios.stores.forms import FormRow, Forms, FormTable, Remembered

VersionName = Annotated[str, Meta(pattern=whole("[0-9a-f]{1,64}"), description="as `GET /v1/runs/{id}` has it")]
FieldName = Annotated[str, Meta(pattern=whole("[a-z0-9_]{1,64}"))]
EventFields = Annotated[
    dict[FieldName, JsonValue], Meta(min_length=1, max_length=100, description="one flat event: docs/events-fields.md")
]
Named = Annotated[list[ShortText], Meta(max_length=100, description="types of actions, or ids of nodes")]


class BotList(Struct):
    """The bots, by tenant."""

    bots: Sequence[ListedBot]


class ScenarioQuery(RequestModel, frozen=True):
    """`version`: of the bot; default: the one in force."""

    version: VersionName | UnsetType = UNSET


class DryRunRequest(RequestModel, frozen=True):
    """An event, as `POST /v1/updates` takes it or as a run shows it. `fail`, `unknown`: what fails, or has an unknown
    outcome, in place of its sample. `stored`: with the variables that the bot remembers of the person of the event.
    """

    event: EventFields
    stored: bool = False
    fail: Named | UnsetType = UNSET
    unknown: Named | UnsetType = UNSET


class ShownDryRunAction(DryRunAction, frozen=True):
    """One action of a dry run. `why`: what released or dropped it, and the error; `error`: that alone; `translations`:
    language → `error` in it, if it is known. `shown`: its message, as the channel of the event shows it.
    """

    shown: PreviewShown | None


class DryRunResult(Struct):
    """The reaction of the bot to an event, rehearsed. `started`: each scenario with the place of its trigger, "" for a
    button that names it. `translations`: language → `warnings` in it, in the same order.
    """

    version: str
    started: Mapping[str, str]
    actions: Sequence[ShownDryRunAction]
    warnings: Sequence[str]
    translations: Mapping[str, Mapping[str, Sequence[str]]]


async def show_bot(request: PlainRequest) -> Response:
    """Show the bot in force. Raises NotFound BOT_NOT_LOADED."""
    return Response(await _bots(request).show(request.tenant, request.timezone))


async def list_bots(request: PlainRequest) -> Response:
    """List the bots that the key may see: an operator's those of all tenants, another one that of its own."""
    reader = request.services.bots
    found = await reader.list(None if request.reaches_all_tenants else request.tenant) if reader else ()
    return Response(BotList(found))


async def show_graph(request: Request[None, ScenarioQuery]) -> Response:
    """Return a scenario as a graph. Raises NotFound BOT_NOT_LOADED, SCENARIO_NOT_FOUND."""
    name, version = request.part("name"), optional(request.query.version) or ""
    return Response(await _bots(request).graph(request.tenant, name, version))


async def dry_run(request: Request[DryRunRequest, NoParameters]) -> Response:
    """Return what the bot would do with an event. Raises NotFound BOT_NOT_LOADED, Invalid EVENT_…."""
    body = request.body
    event = {"id": secrets.token_hex(12), **body.event}
    event.setdefault("chat_id", event.get("user_id"))
    if body.stored and request.services.forms:
        person = f"{event.get('channel')}:{event.get('user_id')}"
        remembered = await request.services.forms.of_person(request.tenant, person)
        event.setdefault("person", dict(remembered.variables))
    found = await _bots(request).dry_run(request.tenant, event, body.fail or (), body.unknown or ())
    views = await request.services.core.channels.views()
    display = next((one.display for one in views if one.name == event["channel"]), None) or Display()
    actions = [_shown(*one, display) for one in zip(found.actions, found.contents, strict=True)]
    others = {"ru": {"warnings": found.russian}}
    return Response(DryRunResult(found.version, found.started, actions, found.warnings, others))


def _shown(action: DryRunAction, content: Content | None, display: Display) -> ShownDryRunAction:
    shown = PreviewShown.of(shown_in(display, action.send["text"], content)) if action.send and content else None
    return ShownDryRunAction(**asdict(action), shown=shown)


def _bots(request: ApiRequest) -> BotReader:
    bots = request.services.bots
    if bots is None:
        raise NotFound("BOT_NOT_LOADED", "This installation has no scenarios.")
    return bots


PersonName = Annotated[str, Meta(pattern=whole("[a-z0-9-]{1,32}:.{1,128}"), description="channel:user_id")]
RunCursor = Annotated[str, Meta(pattern=whole("[0-9]{1,15}-[0-9]{1,5}\\.[0-9a-f]{1,64}"))]


class RunQuery(RequestModel, frozen=True):
    """The filter and the page of a list of runs. `person`: `<channel>:<user_id>`; `scenario`: the full name of a
    scenario that the event has started; `with_faults`: an action failed or is unknown.
    """

    person: PersonName | UnsetType = UNSET
    scenario: Label | UnsetType = UNSET
    state: Literal["running", "over", "dropped", "with_faults"] | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    cursor: RunCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100, extra_json_schema={"default": 20})] | UnsetType = UNSET


class RunPage(Struct):
    """Runs, the newest first. `next`: the cursor of the next page; a page with one may be short, or empty."""

    runs: Sequence[RunSummary]
    next: str | None


async def show_run(request: PlainRequest) -> Response:
    """Show one run. Raises NotFound RUN_NOT_FOUND."""
    run = await _runs(request).read(request.tenant, _run_id(request))
    return Response(replace(run, name=await name_in_directory(request, run.person)))


async def list_runs(request: Request[None, RunQuery]) -> Response:
    query, reader = request.query, _runs(request)
    since, until = request.time(query.since, "since"), request.time(query.until, "until")
    wanted = RunFilter(query.person or "", query.scenario or "", query.state or "", since, until)
    found, cursor = await reader.page(request.tenant, wanted, query.cursor or None, query.limit or 20)
    people = list({one.person for one in found})
    found_names = await asyncio.gather(*(name_in_directory(request, one) for one in people))
    names = dict(zip(people, found_names, strict=True))
    page = RunPage([replace(one, name=names[one.person]) for one in found], cursor)
    return Response(page, headers=next_page_link(request.http, cursor))


async def drop_run(request: PlainRequest) -> Response:
    """End a run without its remaining actions. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER."""
    return Response(await _runs(request).drop(request.tenant, _run_id(request)))


async def drive_run(request: PlainRequest) -> Response:
    """Have a run that waits driven on now. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER, RUN_WITHOUT_TASK."""
    return Response(await _runs(request).drive_on(request.tenant, _run_id(request)))


async def name_in_directory(request: ApiRequest, person: str) -> str | None:
    """Return the name of `<channel>:<user_id>`; None if the directory does not know this contact."""
    channel, _, address = person.partition(":")
    user = await request.services.core.directory.users.by_contact(request.tenant, channel, address)
    return user.name if user else None


def _run_id(request: PlainRequest) -> str:
    return request.part("id")


def _runs(request: ApiRequest) -> RunReader:
    reader = request.services.runs
    if reader is None:
        raise NotFound("RUN_NOT_FOUND", "This installation has no scenarios.")
    return reader


class FormQuery(RequestModel, frozen=True):
    """The page of a form."""

    cursor: Annotated[str, Meta(pattern=whole("[0-9]{1,9}(-[0-9]{1,9})*"))] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 1000})] | UnsetType = UNSET


class RememberedQuery(RequestModel, frozen=True):
    """The person: `<channel>:<user_id>`."""

    person: PersonName


class FormList(Struct):
    """The names of the forms with answers."""

    forms: Sequence[str]


_PAGE = 1000


async def list_forms(request: PlainRequest) -> Response:
    return Response(FormList(await _forms(request).names(request.tenant)))


async def show_form(request: Request[None, FormQuery]) -> Response:
    """Return a page of a form as a table. Raises NotFound FORM_NOT_FOUND."""
    name, cursor = request.part("name"), request.query.cursor or ""
    table = await _form_page(request, name, cursor, request.query.limit or _PAGE)
    names = await asyncio.gather(*(name_in_directory(request, row.person) for row in table.rows))
    rows = [replace(row, name=found) for row, found in zip(table.rows, names, strict=True)]
    return Response(replace(table, rows=rows))


async def export_form(request: Request[None, ExportQuery]) -> web.StreamResponse:
    """Return all answers to a form as CSV. Raises NotFound FORM_NOT_FOUND."""
    name = request.part("name")
    tables = [await _form_page(request, name, "", _PAGE)]
    while following := tables[-1].next:
        tables.append(await _form_page(request, name, following, _PAGE))
    return await respond_csv(request, f"{name}.csv", _csv_pages(tables), for_excel=request.query.for_excel)


async def _csv_pages(tables: Sequence[FormTable]) -> AsyncIterator[Rows]:
    """Yield the header and the rows. A page has the columns of its own rows only, so all are read before the first."""
    columns = list(dict.fromkeys(name for table in tables for name in table.columns))
    yield [["person", "first", "last", *columns]]
    for table in tables:
        yield [_cells(row, columns) for row in table.rows]


def _cells(row: FormRow, columns: Sequence[str]) -> list[str]:
    return [row.person, row.first, row.last, *(_cell(row.answers.get(name)) for name in columns)]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)


async def _form_page(request: ApiRequest, name: str, cursor: str, limit: int) -> FormTable:
    """Return a page of a form. Raises NotFound FORM_NOT_FOUND."""
    table = await _forms(request).table(request.tenant, name, cursor, limit)
    if not table.rows and not cursor and table.next is None:
        raise NotFound("FORM_NOT_FOUND", f"There are no answers to a form {name!r}.")
    return table


async def show_remembered(request: Request[None, RememberedQuery]) -> Response:
    return Response(await _forms(request).of_person(request.tenant, request.query.person))


def _forms(request: ApiRequest) -> Forms:
    reader = request.services.forms
    if reader is None:
        raise NotFound("FORM_NOT_FOUND", "This installation has no scenarios.")
    return reader


ROUTES: Routes = (
    Route("GET", "/v1/bots", "The bot in force: version, problems of its files, triggers, scenarios", "read", show_bot,
          200, BotView),
    Route("GET", "/v1/bots:all",
          "The bots, and what of them has stopped; an operator's key lists those of all tenants", "read", list_bots,
          200, BotList),
    Route("POST", "/v1/scenarios:dry-run", "What the bot would do with an event; nothing is sent or written", "read",
          dry_run, 200, DryRunResult, body=DryRunRequest),
    Route("GET", "/v1/scenarios/{name}", "A scenario as a graph, with the place of each action", "read", show_graph,
          200, ScenarioGraph, query=ScenarioQuery),
    Route("GET", "/v1/forms", "List the forms that people have filled in", "read", list_forms, 200, FormList),
    Route("GET", "/v1/forms/{name}", "The answers to a form as a table, a row for each person", "read", show_form, 200,
          FormTable, query=FormQuery),
    Route("GET", "/v1/forms/{name}/answers.csv", "Export the answers to a form as CSV", "read", export_form, 200,
          CONTENT_TYPE, query=ExportQuery),
    Route("GET", "/v1/variables", "What the bot remembers of a person: variables, and answers to forms", "read",
          show_remembered, 200, Remembered, query=RememberedQuery),
    Route("GET", "/v1/runs", "List the runs of scenarios, newest first", "read", list_runs, 200, RunPage,
          query=RunQuery, headers=NEXT_PAGE),
    Route("GET", "/v1/runs/{id}", "Show a run of scenarios: for each action what released or dropped it, and when",
          "read", show_run, 200, RunView),
    Route("POST", "/v1/runs/{id}:drop", "End a run without its remaining actions; its messages are sent", "manage",
          drop_run, 200, RunView, repeats=Repeats.STORED),
    Route("POST", "/v1/runs/{id}:drive", "Have a run that waits driven on now", "manage", drive_run, 200, RunView,
          repeats=Repeats.STORED),
)  # fmt: skip
