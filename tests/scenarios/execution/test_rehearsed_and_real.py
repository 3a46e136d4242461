"""The tests of the cookbook say the same in the product as in `scenarios test` (C-110)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from core.model.people import Group, User
from couriers.telegram_bot import CHANNEL
from scenarios.bot.data import MapNode, plain_mapping
from scenarios.execution.active_bot import ActiveBot
from scenarios.loader.composer import compose
from scenarios.loader.reading import Problems
from scenarios.testing.bot_tests import PERSON
from scenarios.testing.conversation import ACTS, Conversation
from scenarios.testing.played_bot import PlayedBot, open_store
from tests.scenarios.execution.conftest import Installation
from tests.support.paths import ROOT
from tests.support.stack import TENANT
from tests.support.waiting import until

COOKBOOK = ROOT / "examples" / "cookbook"
PLAYED = ["booking", "broadcast", "else", "escalation", "language", "menu", "quiz", "support-desk"]
"""Not the others: they wait for days, ask Telegram, or begin with an answer to a delivery."""

MOMENT = datetime(2026, 12, 1, 9, tzinfo=UTC)
Step = Mapping[str, Any]


class Product:
    """A conversation with the running bot, as `Conversation` has it with a played one."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.group = ""
        self._events = count()

    async def act(self, what: str, given: Any, person: str) -> None:
        fields = {
            "channel": CHANNEL,
            "user_id": person,
            **({"chat_id": self.group, "chat_type": "supergroup"} if self.group else {"chat_id": person}),
            "first_name": "Anna",
            "event_date": f"{MOMENT:%FT%T%z}",
        }
        if what == "press":
            data, message = self._button(given, person), len(self.installation.courier.attempted)
            press: dict[str, Any] = {
                "kind": "callback",
                "event_text": None,
                "callback_data": data,
                "message_id": message,
            }
            await self.installation.put(**press, **fields)
        else:
            written = given if isinstance(given, Mapping) else {"event_text": given}
            if what == "reply":
                written = {**written, "reply_message_id": "1", "reply_message_text": self._last_text(person)}
            await self.installation.put_event({"id": f"t{next(self._events)}", "kind": "text", **fields, **written})

    def _last_text(self, person: str) -> str:
        """Returns the last text in the chat."""
        attempted = reversed(self.installation.courier.attempted)
        return next(one.text for one in attempted if one.address == (self.group or person))

    def _button(self, label: str, person: str) -> str:
        """Returns what a button of the last message that has it sends."""
        to_person = [one for one in reversed(self.installation.courier.attempted) if one.address == person]
        rows = [row for one in to_person if one.content for row in one.content.inline]
        return next(button.data for row in rows for button in row if button.text == label)


def steps_of(folder: Path) -> list[Step]:
    """Returns the steps of the first test, which lets nothing fail and no time pass."""
    (file,) = (folder / "tests").glob("*.yaml")
    root = compose(file.read_text(), file.name, Problems(), lambda text, place: text)
    assert isinstance(root, MapNode)
    tests: Mapping[str, Any] = plain_mapping(root)
    steps: list[Step] = next(iter(tests.values()))["steps"]
    return steps


async def directory(installation: Installation) -> None:
    """Each group has one person; the directory does not know those who write, so the sender is the bot."""
    await installation.directory.users.create(TENANT, User(9, contacts={CHANNEL: ["90"]}))
    for group in ("staff", "plumbers"):
        await installation.directory.groups.create(TENANT, Group(group, group), [9])


@pytest.mark.parametrize("shards", [1])
@pytest.mark.parametrize("name", PLAYED)
async def test_the_product_says_what_a_test_says(bare: Installation, name: str) -> None:
    bare.folder = COOKBOOK / name
    bare.courier.channel = CHANNEL
    await bare.start_courier()
    await directory(bare)
    await bare.start()
    active = ActiveBot(bare.folder, {})
    async with open_store() as store, PlayedBot.open(store, active, MOMENT, UTC) as bot:
        product, talk, said = Product(bare), Conversation(bot), bot.said
        for step in steps_of(bare.folder):
            for what in (one for one in ACTS if one in step):
                person, before = str(step.get("as", PERSON)), len(said)
                talk.group = product.group = str(step.get("in") or "")
                await talk.act(what, step[what], person)
                await product.act(what, step[what], person)
                await until(lambda: len(bare.texts) >= len(said))
                assert sorted(bare.texts[before:]) == sorted(one.message.text for one in said[before:]), step
