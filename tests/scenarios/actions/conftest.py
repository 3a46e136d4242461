"""Single actions on a real server, with an unmodified aiogram and the sandbox's Bot API; then the audit."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.errors import Refused
from core.redis.store import Store
from providers.models import FileCache
from scenarios.actions import own_actions
from scenarios.bot import Action, Bot, Place
from scenarios.context import Context, ScenarioServices
from scenarios.engine import Ending, State, Step, Values, failed
from scenarios.execution.opening import ScenarioOptions, open_services
from scenarios.placeholders.attributes import prepare
from scenarios.rehearsal import RehearsedStep, play
from scenarios.stores.people import People
from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP, BotApi, bot_api
from tests.scenarios.actions.contexts import executed

__all__ = ["bot_api"]

TENANT = "university"
PRIVATE: dict[str, Any] = {"channel": "telegram-bot", "user_id": ANNA, "chat_id": ANNA, "chat_type": "private"}
IN_GROUP: dict[str, Any] = {
    "channel": "telegram-bot",
    "user_id": BORIS,
    "chat_id": GROUP,
    "chat_type": "supergroup",
    "message_id": 7,
}
"""Events without a text: Anna writes to the bot, Boris in a group."""


@dataclass
class Bench:
    """Executes single actions. `bot`: has the roles."""

    services: ScenarioServices
    bot_api: BotApi
    bot: Bot = field(default_factory=Bot)

    @property
    def people(self) -> People:
        return People(self.services.core.store, TENANT)

    def context(
        self, fields: Mapping[str, Any], event: Mapping[str, Any], results: Mapping[str, Any], run: str
    ) -> Context:
        """A step as the driver prepares it. `results`: of earlier actions of the chain."""
        kind = own_actions()[fields["type"]]
        written = {name: value for name, value in fields.items() if name != "type"}
        action = Action(kind.name, written, Place("scenarios/test.yaml"), placeholder=fields.get("placeholder"))
        values = Values(results)
        step = Step((0, 0), "test.scenario", action, State.PENDING, values=values)
        prepared = prepare(action, {"placeholder": kind.placeholder}, values, event)
        return Context(self.services, self.bot, Path(), run, step, event, prepared)

    async def play(
        self,
        fields: Mapping[str, Any],
        event: Mapping[str, Any],
        results: Mapping[str, Any] | None = None,
        run: str = "1",
    ) -> Ending:
        """Execute one action; what it refuses is its error, as in a run."""
        kind, context = own_actions()[fields["type"]], self.context(fields, event, results or {}, run)
        try:
            ending = await executed(kind, context)
        except Refused as refused:
            return kind.failure(refused) if kind.failure else failed(refused.code, refused.said)
        assert ending.returned.results.keys() <= own_actions()[fields["type"]].returns.keys(), (
            "the check knows no others"
        )
        return ending

    async def results(self, fields: Mapping[str, Any], event: Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
        """The results of an action that completes."""
        ending = await self.play(fields, event, **more)
        assert (ending.state, ending.error) == (State.COMPLETED, "")
        return ending.returned.results

    def dry(self, fields: Mapping[str, Any], event: Mapping[str, Any]) -> Ending:
        """How the action ends in a dry run."""
        kind, context = own_actions()[fields["type"]], self.context(fields, event, {}, "dry")
        ending = play(RehearsedStep(self.bot, kind, context.step, event, context.prepared))
        assert ending is not None
        return ending

    async def is_as_dry(self, fields: Mapping[str, Any], event: Mapping[str, Any], run: str = "1") -> Mapping[str, Any]:
        """The results of an action that completes here and in a dry run, with results of the same names and types."""
        results, dry = await self.results(fields, event, run=run), self.dry(fields, event)
        assert dry.state is State.COMPLETED, dry.error
        found = dry.returned.results
        assert {name: type(value) for name, value in found.items()} == {
            name: type(value) for name, value in results.items()
        }
        return found

    async def error(self, fields: Mapping[str, Any], event: Mapping[str, Any], **more: Any) -> str:
        """The error of an action that fails."""
        ending = await self.play(fields, event, **more)
        assert ending.state is State.FAILED
        return str(ending.error)

    def without_telegram(self) -> "Bench":
        return replace(self, services=replace(self.services, telegram=None))


@pytest.fixture
def store(audited_store: Store) -> Store:
    return audited_store


@pytest.fixture
async def bench(store: Store, bot_api: BotApi, tmp_path: Path) -> AsyncIterator[Bench]:
    options = ScenarioOptions(
        TENANT,
        ZoneInfo("Europe/Moscow"),
        telegram=bot_api.named_calls,
        pictures=FileCache(tmp_path / "pictures", 10**6, timedelta(days=1)),
    )
    async with open_services(store, options) as services:
        yield Bench(services, bot_api)
