"""The bot in force: its version and problems, its scenarios as graphs, and a dry run."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, convert, to_builtins

from core.errors import NotFound
from core.model.display import Display
from couriers.sending.content.shown import Shown, shown_in
from delivery.api.deliveries.preview import PreviewShown
from delivery.http.context import Request, Response
from delivery.http.fields.timestamps import write_time
from delivery.http.fields.types import RequestModel, ShortText
from delivery.http.input.reading import optional
from delivery.http.route import NoParameters, Route, Routes
from delivery.services import BotReader

VersionName = Annotated[str, Meta(pattern="^[0-9a-f]{1,64}$", description="as `GET /v1/runs/{id}` has it")]
FieldName = Annotated[str, Meta(pattern="^[a-z0-9_]{1,64}$")]
EventFields = Annotated[
    dict[FieldName, Any], Meta(min_length=1, max_length=100, description="one flat event: docs/scenarios.md")
]
Named = Annotated[list[ShortText], Meta(max_length=100, description="types of actions, or ids of nodes")]


class Problem(Struct):
    """A fault in a file. `severity`: error or warning. `parameters`: the names, numbers and values in the message, by
    name. `translations`: language → `message` in it, if it is known.
    """

    file: str
    line: int
    column: int
    severity: str
    code: str
    message: str
    parameters: Mapping[str, str]
    translations: Mapping[str, Mapping[str, str]]


class Trigger(Struct):
    """A trigger of a scenario. `chats`: private or group, as the file decides. `event`: the kind of the event; `kind`
    and `key`: how it is compared, and with what. `from_chat`: the chats that are named. `continues`: lower kinds are
    tried, too. `place`: file and line.
    """

    chats: str
    event: str
    kind: str
    key: str
    scenario: str
    from_chat: Sequence[str]
    continues: bool
    place: str


class ScenarioName(Struct):
    """A scenario, where it is written, and how many actions it has."""

    name: str
    place: str
    actions: int


class Bot(Struct):
    """The bot in force. `is_good`: whether this version has no mistakes. `problems`: the first 200 of the files as they
    are now; with mistakes the last good version stays in force. `problem_count`: all.
    """

    version: str
    loaded_at: str
    folder: str
    is_good: bool
    problems: Sequence[Problem]
    problem_count: int
    triggers: Sequence[Trigger]
    scenarios: Sequence[ScenarioName]

    @classmethod
    def of(cls, view: Any) -> "Bot":
        shown = to_builtins(view)
        return convert({**shown["active"], **shown, "loaded_at": write_time(view.loaded_at)}, cls)


class StoppedPart(Struct):
    """A part of a bot that has stopped, `bot telegram` for example, while the rest goes on. `since`: Unix ms."""

    part: str
    reason: str
    since: int


class BotRow(Struct):
    """A bot of a tenant. `version`: in force, null if no process has loaded it. `is_good`: whether it has no mistakes.
    `problem_count`: of the files as they are now. `stopped`: what of it does not work, and why.
    """

    tenant: str
    version: str | None
    folder: str
    is_good: bool
    problem_count: int
    stopped: Sequence[StoppedPart]

    @classmethod
    def of(cls, entry: Any) -> "BotRow":
        shown = to_builtins(entry)
        loaded = shown["active"] or {"version": None, "folder": "", "is_good": False, "problem_count": 0}
        return convert({**loaded, **shown}, cls)


class BotList(Struct):
    """The bots, by tenant."""

    bots: Sequence[BotRow]


class ScenarioQuery(RequestModel, frozen=True):
    """`version`: of the bot; default: the one in force."""

    version: VersionName | UnsetType = UNSET


class Node(Struct):
    """One action. `title`: the beginning of what it says. `chain`, `chain_drop`: the outcomes that they name. `fields`:
    as written, without secrets. `x`, `y`: the middle of its box, 180 × 52 large.
    """

    id: str
    n: int
    scenario: str
    type: str
    title: str
    place: str
    chain: str
    chain_drop: str
    fields: Mapping[str, Any]
    x: int
    y: int


class Edge(Struct):
    """A link from one action to the next. `label`: the outcomes with which the second action runs, or `splices in`.
    `points`: its line; none of an edge that leads back.
    """

    source: str
    target: str
    label: str
    points: Sequence[tuple[int, int]]


class Graph(Struct):
    """A scenario with all that it splices in, and where each action is drawn. `unknown`: names that are known only when
    it runs. `left_out`: actions behind the first 300.
    """

    name: str
    version: str
    place: str
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    unknown: Sequence[str]
    left_out: int
    width: int
    height: int

    @classmethod
    def of(cls, view: Any) -> "Graph":
        return convert(to_builtins(view), cls)


class DryRunRequest(RequestModel, frozen=True):
    """An event, as `POST /v1/updates` takes it or as a run shows it. `fail`, `unknown`: what fails, or has an unknown
    outcome, in place of its sample.
    """

    event: EventFields
    fail: Named | UnsetType = UNSET
    unknown: Named | UnsetType = UNSET


class DryAction(Struct):
    """One action of a dry run. `why`: what released or dropped it, and the error; `error`: that alone; `translations`:
    language → `error` in it, if it is known. `shown`: its message, as the channel of the event shows it.
    """

    n: int
    node: str
    scenario: str
    type: str
    outcome: str
    why: str
    error: str
    given: Mapping[str, Any]
    send: Mapping[str, Any] | None
    results: Mapping[str, Any]
    translations: Mapping[str, Mapping[str, str]]
    shown: PreviewShown | None


class DryRunResult(Struct):
    """The reaction of the bot to an event, rehearsed. `started`: each scenario with the place of its trigger, "" for a
    button that names it. `translations`: language → `warnings` in it, in the same order.
    """

    version: str
    started: Mapping[str, str]
    actions: Sequence[DryAction]
    warnings: Sequence[str]
    translations: Mapping[str, Mapping[str, Sequence[str]]]


async def show(request: Request[None, NoParameters]) -> Response:
    """Show the bot in force. Raises NotFound BOT_NOT_LOADED."""
    return Response(Bot.of(await _bots(request).show(request.tenant)))


async def list_bots(request: Request[None, NoParameters]) -> Response:
    """List the bots that the key may see: an operator's those of all tenants, another one that of its own."""
    reader = request.services.bots
    found = await reader.list(None if request.reaches_all_tenants else request.tenant) if reader else ()
    return Response(BotList([BotRow.of(one) for one in found]))


async def graph(request: Request[None, ScenarioQuery]) -> Response:
    """Return a scenario as a graph. Raises NotFound BOT_NOT_LOADED, SCENARIO_NOT_FOUND."""
    name, version = request.http.match_info["name"], optional(request.query.version) or ""
    return Response(Graph.of(await _bots(request).graph(request.tenant, name, version)))


async def dry_run(request: Request[DryRunRequest, NoParameters]) -> Response:
    """Return what the bot would do with an event. Raises NotFound BOT_NOT_LOADED, Invalid EVENT_…."""
    body = request.body
    event = {"id": secrets.token_hex(12), **body.event}
    event.setdefault("chat_id", event.get("user_id"))
    found = await _bots(request).dry_run(request.tenant, event, body.fail or (), body.unknown or ())
    views = await request.services.core.channels.views()
    display = next((one.display for one in views if one.name == event["channel"]), None) or Display()
    actions = [_action(one, display) for one in found.rows]
    others = {"ru": {"warnings": found.russian}}
    return Response(DryRunResult(found.version, found.started, actions, found.warnings, others))


def _action(found: Any, display: Display) -> DryAction:
    row, shown = found.row, _shown(found, display)
    shown_as = PreviewShown.of(shown) if shown else None
    return DryAction(**to_builtins(row), translations=found.translations, shown=shown_as)


def _shown(found: Any, display: Display) -> Shown | None:
    return shown_in(display, found.row.send["text"], found.content) if found.content else None


def _bots(request: Request[Any, Any]) -> BotReader:
    bots = request.services.bots
    if bots is None:
        raise NotFound("BOT_NOT_LOADED", "This installation has no scenarios.")
    return bots


ROUTES: Routes = (
    Route("GET", "/v1/bots", "The bot in force: version, problems of its files, triggers, scenarios", "read", show,
          200, Bot),
    Route("GET", "/v1/bots:all",
          "The bots, and what of them has stopped; an operator's key lists those of all tenants", "read", list_bots,
          200, BotList),
    Route("POST", "/v1/scenarios:dry-run", "What the bot would do with an event; nothing is sent or written", "read",
          dry_run, 200, DryRunResult, body=DryRunRequest),
    Route("GET", "/v1/scenarios/{name}", "A scenario as a graph, with the place of each action", "read", graph, 200,
          Graph, query=ScenarioQuery),
)  # fmt: skip
