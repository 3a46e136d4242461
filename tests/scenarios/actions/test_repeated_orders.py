"""What an action does in a person's name happens once, also if a crash has it executed again."""

from dataclasses import replace

import pytest

from core.deliveries.channels import ChannelFacts, Channels
from core.model.history_key import HistoryKey
from core.model.people import Group, User
from scenarios.bot import Bot
from tests.sandbox.bot_api_clients import ANNA
from tests.scenarios.actions.conftest import PRIVATE, TENANT, Bench
from tests.scenarios.engine.play import scenario


@pytest.fixture
async def school(bench: Bench) -> Bench:
    """Anna may write to herself."""
    await Channels(bench.services.core.store).register("telegram-bot", ChannelFacts(100))
    anna = User(1, "Анна", "anna@example.org", "trainer", "en", {"telegram-bot": [str(ANNA)]})
    await bench.services.core.directory.users.create(TENANT, anna)
    return bench


async def test_a_repeated_order_is_the_same_delivery(school: Bench) -> None:
    fields = {"type": "order", "text": "Пары не будет", "to": [1], "deliver_at": "tomorrow 9:00"}
    first, again, other = [await school.results(fields, PRIVATE, run=run) for run in ("1", "1", "2")]
    assert first == again
    assert other["delivery_id"] != first["delivery_id"]
    for delivery in (first, other):  # an audit of the store follows, which must find nothing left over
        await school.services.core.deliveries.cancel(HistoryKey.parse(str(delivery["delivery_id"])), TENANT)


async def test_a_repeated_loop_over_a_group_has_the_same_people(school: Bench) -> None:
    groups = school.services.core.directory.groups
    await groups.create(TENANT, Group("g"), [1])
    bench = replace(school, bot=Bot(scenarios={"inner": scenario("inner")}))
    loop, counts = {"type": "for_each", "group": "g", "scenario": "inner"}, []
    for run in ("1", "1", "2"):
        counts.append((await bench.results(loop, PRIVATE, run=run))["count"])
        await groups.remove_member(TENANT, "g", 1)
    assert counts == [1, 1, 0]


async def test_a_message_of_a_scenario_asks_a_question(school: Bench) -> None:
    asked = {}
    for answer in ("confirm", "number", ["Приду", "Не приду"]):
        fields = {"type": "send", "text": "Придёте?", "to": {"id": 1}, "delay": "1d"}
        result = await school.results({**fields, "answer": answer}, PRIVATE, run=str(answer))
        key = HistoryKey.parse(str(result["delivery_id"]))
        question = (await school.services.core.deliveries.read(key, TENANT)).question
        assert question
        asked[str(question.kind)] = [(one.key, one.text) for one in question.options]
        await school.services.core.deliveries.cancel(key, TENANT)
    choice = [("1", "Приду"), ("2", "Не приду")]
    assert asked == {"confirm": [("read", "Прочитано")], "number": [], "choice": choice}
