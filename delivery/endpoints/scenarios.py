"""The bot in force: its version and problems, its scenarios as graphs, and a dry run."""

import secrets
from typing import Any

from msgspec import to_builtins

from core.errors import NotFound
from core.model.display import Display
from couriers.sending.content.shown import Shown, shown_in
from delivery.endpoints.directory.reading import optional
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas.bots import scenarios as schemas
from delivery.schemas.previews import PreviewShown
from delivery.services import BotReader


async def show(request: Request[None, NoParameters]) -> Response:
    """Show the bot in force. Raises NotFound BOT_NOT_LOADED."""
    return Response(schemas.Bot.of(await _bots(request).show(request.tenant)))


async def list_bots(request: Request[None, NoParameters]) -> Response:
    """List the bots that the key may see: an operator's those of all tenants, another one that of its own."""
    reader = request.services.bots
    found = await reader.list(None if request.reaches_all_tenants else request.tenant) if reader else ()
    return Response(schemas.BotList([schemas.BotRow.of(one) for one in found]))


async def graph(request: Request[None, schemas.ScenarioQuery]) -> Response:
    """Return a scenario as a graph. Raises NotFound BOT_NOT_LOADED, SCENARIO_NOT_FOUND."""
    name, version = request.http.match_info["name"], optional(request.query.version) or ""
    return Response(schemas.Graph.of(await _bots(request).graph(request.tenant, name, version)))


async def dry_run(request: Request[schemas.DryRunRequest, NoParameters]) -> Response:
    """Return what the bot would do with an event. Raises NotFound BOT_NOT_LOADED, Invalid EVENT_…."""
    body = request.body
    event = {"id": secrets.token_hex(12), **body.event}
    event.setdefault("chat_id", event.get("user_id"))
    found = await _bots(request).dry_run(request.tenant, event, body.fail or (), body.unknown or ())
    views = await request.services.core.channels.views()
    display = next((one.display for one in views if one.name == event["channel"]), None) or Display()
    actions = [_action(one, display) for one in found.rows]
    others = {"ru": {"warnings": found.russian}}
    return Response(schemas.DryRunResult(found.version, found.started, actions, found.warnings, others))


def _action(found: Any, display: Display) -> schemas.DryAction:
    row, shown = found.row, _shown(found, display)
    shown_as = PreviewShown.of(shown) if shown else None
    return schemas.DryAction(**to_builtins(row), translations=found.translations, shown=shown_as)


def _shown(found: Any, display: Display) -> Shown | None:
    return shown_in(display, found.row.send["text"], found.content) if found.content else None


def _bots(request: Request[Any, Any]) -> BotReader:
    bots = request.services.bots
    if bots is None:
        raise NotFound("BOT_NOT_LOADED", "This installation has no scenarios.")
    return bots
