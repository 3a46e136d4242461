"""The bot in force: its version and problems, its scenarios as graphs, and a dry run."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from core.errors import NotFound
from core.model.content import Content
from core.model.display import Display
from core.model.field_types import ShortText, whole
from core.model.json_form import JsonValue
from couriers.sending.shown import shown_in
from delivery.api.deliveries.preview import PreviewShown
from delivery.http.context import ApiRequest, Request, Response
from delivery.http.fields import RequestModel
from delivery.http.input.reading import optional
from delivery.http.route import NoParameters, Route, Routes
from scenarios.inspection.bots import BotReader, BotView, DryRunAction, ListedBot
from scenarios.inspection.scenario_graph import ScenarioGraph

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


async def show(request: Request[None, NoParameters]) -> Response:
    """Show the bot in force. Raises NotFound BOT_NOT_LOADED."""
    options = request.options
    zone = options.tenant_timezones.get(request.tenant, options.timezone)
    return Response(await _bots(request).show(request.tenant, zone))


async def list_bots(request: Request[None, NoParameters]) -> Response:
    """List the bots that the key may see: an operator's those of all tenants, another one that of its own."""
    reader = request.services.bots
    found = await reader.list(None if request.reaches_all_tenants else request.tenant) if reader else ()
    return Response(BotList(found))


async def graph(request: Request[None, ScenarioQuery]) -> Response:
    """Return a scenario as a graph. Raises NotFound BOT_NOT_LOADED, SCENARIO_NOT_FOUND."""
    name, version = request.http.match_info["name"], optional(request.query.version) or ""
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


ROUTES: Routes = (
    Route("GET", "/v1/bots", "The bot in force: version, problems of its files, triggers, scenarios", "read", show,
          200, BotView),
    Route("GET", "/v1/bots:all",
          "The bots, and what of them has stopped; an operator's key lists those of all tenants", "read", list_bots,
          200, BotList),
    Route("POST", "/v1/scenarios:dry-run", "What the bot would do with an event; nothing is sent or written", "read",
          dry_run, 200, DryRunResult, body=DryRunRequest),
    Route("GET", "/v1/scenarios/{name}", "A scenario as a graph, with the place of each action", "read", graph, 200,
          ScenarioGraph, query=ScenarioQuery),
)  # fmt: skip
