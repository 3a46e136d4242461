"""Contexts of actions that need models, speech and Telegram's files, and nothing else of a process."""

from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from providers.models import FileCache, Models
from scenarios.bot import Action, Bot, Place
from scenarios.context import Context, ScenarioServices, Telegram
from scenarios.engine import Ending, State, Step, Values
from scenarios.placeholders.attributes import prepare
from scenarios.schema import ActionType

EVENT = {"id": "1", "channel": "telegram-bot", "kind": "text", "user_id": 7, "event_text": "Привет"}


async def executed(kind: ActionType, context: Context) -> Ending:
    """The ending of an action, executed with the attributes of its context."""
    assert kind.execute is not None
    ending: Ending = await kind.execute(context, kind.converted(context.prepared, context.services.timezone))
    return ending


def context_of(
    folder: Path,
    models: Models,
    written: Mapping[str, Any],
    *,
    event: Mapping[str, Any] = EVENT,
    telegram: Telegram | None = None,
    results: Mapping[str, Any] | None = None,
) -> Context:
    """The context of an action with these fields. `results`: those of the chain before it."""
    fields = {"type": "x", **written}
    action = Action("x", fields, Place("x.yaml"), placeholder=fields.get("placeholder"))
    values = Values(results or {})
    step = Step((0, 0), "x.start", action, State.PENDING, values=values)
    services = cast(
        ScenarioServices, SimpleNamespace(models=models, telegram=telegram, pictures=FileCache.nowhere(), timezone=UTC)
    )
    return Context(services, Bot(), folder, "run", step, event, prepare(action, {}, values, event))
