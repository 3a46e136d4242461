"""What an action does in a person's name happens once, also if a crash has it executed again."""

from dataclasses import replace

import pytest

from core.deliveries.channels import ChannelFacts, Channels
from core.model.clock import from_ms
from core.model.content import Display, Limits
from core.model.history_key import HistoryKey
from core.model.people import Group, User, UserChange
from core.model.question import Question
from core.queue import TaskFilter
from core.updates.events import ANSWERS_TUBE
from scenarios.bot import Bot
from scenarios.engine import State
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


async def asked(school: Bench, run: str, **fields: str) -> Question | None:
    """The question of an order; the delivery is cancelled, since an audit of the store must find nothing left over."""
    order = {"type": "order", "text": "Придёте?", "to": [1], "deliver_at": "tomorrow 9:00", **fields}
    key = HistoryKey.parse(str((await school.results(order, PRIVATE, run=run))["delivery_id"]))
    found = (await school.services.core.deliveries.read(key, TENANT)).question
    await school.services.core.deliveries.cancel(key, TENANT)
    await school.services.core.queue.cancel_by(TaskFilter(tenant=TENANT, tube=ANSWERS_TUBE))
    return found


async def test_an_order_asks_until_a_time_and_its_options_are_lines(school: Bench) -> None:
    question = await asked(school, "1", answer="Приду\n\n Не приду ", until="tomorrow 18:00")
    assert question
    assert [one.text for one in question.options] == ["Приду", "Не приду"]
    assert f"{from_ms(question.until).astimezone(school.services.timezone):%H:%M}" == "18:00"
    question = await asked(school, "2", answer="confirm", until="never")
    assert question
    assert not question.until
    assert await asked(school, "3", answer="none", until="never") is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"answer": "confirm", "until": "01.01.2020 9:00"}, "UNTIL_PAST"),
        ({"answer": "confirm", "until": "tomorrow 8:00"}, "UNTIL_BEFORE_DUE"),
        ({"answer": "confirm", "until": "soon"}, "TIME_MALFORMED"),
        ({"answer": "none", "until": "tomorrow 18:00"}, "ANSWER_MISSING"),
        ({"answer": "Приду\nприду"}, "OPTION_REPEATED"),
        ({"answer": "one option"}, "ANSWER_MALFORMED"),
    ],
)
@pytest.mark.parametrize("preview", [True, False])
async def test_a_question_that_cannot_be_is_refused_with_its_code(
    school: Bench, fields: dict[str, str], code: str, preview: bool
) -> None:
    order = {"type": "order", "text": "Придёте?", "to": [1], "deliver_at": "tomorrow 9:00", **fields}
    ending = await school.play({**order, "preview": preview}, PRIVATE)
    assert (ending.state, ending.code) == (State.FAILED, code)


async def test_a_preview_counts_the_sms_with_the_question(school: Bench) -> None:
    long = "Собрание завтра в восемнадцать часов в кабинете 12. Придёте?"
    display = Display(limits=Limits(in_sms=True, numbers=True))
    await Channels(school.services.core.store).register("sms", ChannelFacts(100), display=display)
    await school.services.core.directory.users.update(TENANT, 1, UserChange(role="admin"))
    boris = User(2, "Борис", None, "student", "ru", {"sms": ["+79990000002"]})
    await school.services.core.directory.users.create(TENANT, boris)
    order = {"type": "order", "text": long, "to": [1, 2], "preview": True}
    plain, asking = [
        await school.results({**order, "answer": answer}, PRIVATE, run=answer) for answer in ("none", "Приду\nНе приду")
    ]
    assert [plain["sms_parts"], asking["sms_parts"]] == [1, 2]
    assert [plain["cannot_answer"], asking["cannot_answer"]] == [0, 1], "Anna's channel has no display"
