"""What scenarios send to the Bot API, and what becomes of each answer, as in the transcript."""

from collections.abc import Callable
from typing import Any

import pytest

from core.redis.store import Store
from couriers.telegram_bot.client import NamedCalls
from scenarios.bot import Bot, BotCommand
from scenarios.execution.menus import Menus
from scenarios.execution.opening import ScenarioOptions, open_services
from scenarios.telegram import denial
from tests.couriers.bot_api_relay import Relay
from tests.couriers.bot_api_transcript import ANSWERS, compare, relay, shown, what_came
from tests.sandbox.bot_api_clients import ANNA, GROUP, BotApi
from tests.scenarios.actions.conftest import IN_GROUP, PRIVATE, Bench

__all__ = ["relay"]

Json = dict[str, Any]


async def test_scenarios_call_the_bot_api(relay: Relay, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    relay.server.joining.set_up(GROUP, title="Клуб", username="club", creator=100_003, administrators=[100_001])
    relay.server.joining.join(ANNA, GROUP)
    options = ScenarioOptions("university", telegram=lambda: NamedCalls(relay.server.token, relay.url))
    played: Json = {}
    async with open_services(store, options) as services:
        bench = Bench(services, BotApi(None, relay.server, None))  # type: ignore[arg-type]
        for name, (fields, event) in actions().items():
            ending = await bench.play(fields, event, run=name)
            played[name] = [relay.received(), _ending(ending)]
        for name, answered in ANSWERS.items():
            if not name.startswith("sent"):
                for action in ("invite link", "remove", "code"):
                    relay.answers.extend([answered, answered])
                    ending = await bench.play(*actions()[action], run=f"{action}{name}")
                    relay.answers.clear()
                    played[f"{action}: {name}"] = [[call[0] for call in relay.received()], _ending(ending)]
        context = bench.context({"type": "restrict", "group_admin": True}, IN_GROUP, {}, "admin")
        played["administrator"] = [str(await denial(context, {"group_admin": True})), relay.received()]
        menus = Menus(services.telegram, store, _Active())  # type: ignore[arg-type]
        await menus.register()
        played["menus"] = relay.received()
        for name in ("chat not found", "blocked", "server error", "bad gateway", "throttled"):
            relay.answers.append(ANSWERS[name])
            played[f"menus: {name}"] = [await what_came(menus.register()), len(relay.received())]
            relay.answers.clear()
    compare("scenarios", played, relay.server.token, caplog)


def _ending(ending: Any) -> Any:
    results = {name: value for name, value in ending.returned.results.items() if name not in ("qr_file", "invite_link")}
    return [str(ending.state), shown(str(ending.error)), results]


class _Active:
    version = "1"

    def __init__(self) -> None:
        commands = (
            BotCommand("start", "Меню", "default"),
            BotCommand("ban", "Выгнать", "chat_administrators", chat_id=GROUP),
        )
        self.bot = Bot(commands=commands)

    def on_change(self, changed: Callable[[], None]) -> None: ...


def actions() -> dict[str, tuple[Json, Json]]:
    group = {**IN_GROUP, "event_text": "https://t.me/+abc и t.me/joinchat/def"}
    query = {**PRIVATE, "kind": "inline_query", "inline_query_id": "4", "event_text": "x"}
    results = [{"title": "Книга", "text": "Читаю", "url": "https://example.org", "description": "x"}, "Просто"]
    answer = {"type": "answer_inline", "inline_query_id": "4", "results": results}
    return {
        "mute": ({"type": "restrict", "restrict_user_id": ANNA, "duration": "1h"}, group),
        "unmute": ({"type": "restrict", "restrict_user_id": ANNA, "can_send_messages": True}, group),
        "invite link": ({"type": "invite_link"}, group),
        "limited link": (
            {"type": "invite_link", "member_limit": 3, "expire": "1d", "requires_approval": False}, group,
        ),
        "link with approval": ({"type": "invite_link", "requires_approval": True, "chat_id": "@club"}, group),
        "clean up": ({"type": "invite_link", "cleanup": True}, group),
        "approve": ({"type": "answer_join", "user_id": ANNA}, group),
        "decline": ({"type": "answer_join", "approve": False, "user_id": ANNA}, group),
        "inline": (answer, query),
        "inline with more": ({**answer, "personal": False, "cache_max_age": "5m", "next_offset": "2"}, query),
        "inline, nothing": ({**answer, "results": []}, query),
        "remove": ({"type": "remove"}, group),
        "code": ({"type": "qr_code", "start": "room"}, PRIVATE),
    }  # fmt: skip
