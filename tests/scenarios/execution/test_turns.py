"""The order of one person's events while a run waits (I19): how long it keeps the turn, and how it gets it back."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from core.deliveries.channels import ChannelFacts, Channels
from core.model.history_key import HistoryKey
from core.model.people import Group, User
from core.queue import Suspend
from core.redis.store import Store
from scenarios.context import Asking, Context, Waiting
from scenarios.engine import Ending, completed
from scenarios.execution.driver import suspension
from scenarios.execution.runs import WaitsFor, decode_wait, encode_wait
from scenarios.schema import ActionType, Attributes
from tests.scenarios.execution.conftest import PERSON, WITHIN, Installation, states
from tests.scenarios.execution.test_waiting import Gate, no_event_is_handled, parked
from tests.support.stack import HOUR, TENANT
from tests.support.waiting import stays, until

MINUTE = timedelta(minutes=1)
PATIENCE = 0.05

TWO_ANSWERS = """
    - {type: send, text: "{event_text} 1"}
    - {type: send, text: "{event_text} 2", chain: completed}
"""

ANSWER, BROADCAST, SLOW = Waiting(HistoryKey.new("bot", 1), one=True), Waiting(HistoryKey.new("bot", 1)), None
IN_PARTS = Waiting(HistoryKey.new("a, b", 1), others=(HistoryKey.new("a, b", 2), HistoryKey.new("бот", 1)))


@pytest.mark.parametrize(
    ("found", "age", "expected"),
    [
        ([ANSWER], 0 * MINUTE, Suspend(10 * MINUTE, checkpoint="run")),
        ([ANSWER, ANSWER], 4 * MINUTE, Suspend(6 * MINUTE, checkpoint="run")),
        ([ANSWER], 10 * MINUTE, Suspend(HOUR, leaves_lane=True, checkpoint="run")),
        ([BROADCAST], 0 * MINUTE, Suspend(MINUTE, checkpoint="run")),
        ([SLOW], MINUTE / 2, Suspend(MINUTE / 2, checkpoint="run")),
        ([ANSWER, SLOW], MINUTE, Suspend(HOUR, leaves_lane=True, checkpoint="run")),
        ([ANSWER, BROADCAST], 2 * MINUTE, Suspend(HOUR, leaves_lane=True, checkpoint="run")),
    ],
)
def test_a_run_keeps_its_turn_ten_minutes_for_its_answers_and_one_for_anything_else(
    found: Sequence[Waiting | None], age: timedelta, expected: Suspend
) -> None:
    assert suspension("run", found, age, 0) == expected


@pytest.mark.parametrize(
    "waiting",
    [
        ANSWER,
        BROADCAST,
        IN_PARTS,
        SLOW,
        Asking(5, 3, 1),
        Asking(5, 0, 0, ANSWER.delivery),
        Asking(5, 0, 0, ANSWER.delivery, "x"),
    ],
)
def test_what_a_step_waits_for_is_read_as_it_was_written(waiting: WaitsFor) -> None:
    assert decode_wait(encode_wait(waiting)) == waiting


async def lines(installation: Installation, *texts: str) -> list[str]:
    """One person writes these; returns the runs."""
    return [await installation.put(text) for text in texts]


async def is_absent(installation: Installation, run: str) -> bool:
    return not await installation.exists(run)


async def wait_until_parked(installation: Installation) -> None:
    await until(lambda: no_event_is_handled(installation), within=WITHIN)


async def test_the_next_line_of_a_person_waits_for_a_parked_answer_and_other_people_do_not(
    installation: Installation,
) -> None:
    gate = Gate()
    installation.courier.respond = lambda message: gate.respond(message) if message.address == PERSON else gate.sent
    installation.actions(TWO_ANSWERS)
    await installation.start(patience=PATIENCE)
    *_, last = await lines(installation, "a", "b", "c")
    await until(lambda: parked(installation), within=WITHIN)
    assert states(await installation.play("other", user_id="8", chat_id="8")) == ["completed"] * 2
    assert installation.texts == ["a 1", "other 1", "other 2"]
    gate.opened.set()
    await installation.over(last)
    assert installation.texts[3:] == ["a 2", "b 1", "b 2", "c 1", "c 2"]


async def test_after_ten_minutes_without_a_courier_the_next_line_goes_on_and_no_answer_is_lost(
    bare: Installation,
) -> None:
    bare.actions(TWO_ANSWERS)
    await bare.start(patience=PATIENCE)
    first, second = await lines(bare, "a", "b")
    await until(lambda: parked(bare), within=WITHIN)
    await wait_until_parked(bare)
    await bare.pass_time(9 * MINUTE)
    await wait_until_parked(bare)
    await stays(lambda: is_absent(bare, second))
    await bare.pass_time(2 * MINUTE)
    await until(lambda: bare.exists(second), within=WITHIN)
    await bare.start_courier()
    for run in (first, second):
        assert states(await bare.over(run)) == ["completed"] * 2
    assert bare.texts[:2] == ["a 1", "b 1"]
    assert sorted(bare.texts[2:]) == ["a 2", "b 2"]


async def test_a_run_whose_delivery_was_lost_with_a_promotion_goes_on_with_unknown(bare: Installation) -> None:
    bare.actions(TWO_ANSWERS.replace("chain: completed", "chain: failed"))
    await bare.start(patience=PATIENCE)
    (run,) = await lines(bare, "a")
    await until(lambda: parked(bare), within=WITHIN)
    await wait_until_parked(bare)
    await bare.stack.redis.delete(*await bare.stack.redis.keys("history:*"))
    await bare.stack.redis.client_kill_filter(_type="normal", skipme=True)  # every reader notices a gap
    await until(lambda: first_state(bare, run, "unknown"), within=WITHIN)


async def first_state(installation: Installation, run: str, wanted: str) -> bool:
    found = states(await installation.read(run))
    return bool(found) and found[0] == wanted


async def start_with_slow_action(
    installation: Installation, gate: Gate, then: str = '{type: send, text: "{event_text}", chain: completed}'
) -> None:
    """The leases are long, so that passing time does not end them."""
    installation.types["slow"] = ActionType("slow", "", execute=gate.execute, tube="test.slow")
    installation.actions(f"    - {{type: slow}}\n    - {then}")
    await installation.start(lease=10 * HOUR)


async def test_a_slow_action_holds_the_next_line_up_for_a_minute(installation: Installation) -> None:
    gate = Gate()
    await start_with_slow_action(installation, gate)
    runs = await lines(installation, "a", "b")
    await until(lambda: gate.entered == 1, within=WITHIN)
    await wait_until_parked(installation)
    await stays(lambda: is_absent(installation, runs[1]))
    await installation.pass_time(2 * MINUTE)
    await until(lambda: gate.entered == 2, within=WITHIN)
    gate.opened.set()
    for run in runs:
        await installation.over(run)


async def test_a_line_whose_slow_action_takes_longer_is_answered_before_the_later_lines_of_its_person(
    installation: Installation,
) -> None:
    gate = Gate()

    async def execute(context: Context, attributes: Attributes) -> Ending:
        return await gate.execute(context, attributes) if context.event["event_text"] == "a" else completed()

    installation.types["slow"] = ActionType("slow", "", execute=execute, tube="test.slow")
    installation.actions('    - {type: slow}\n    - {type: send, text: "{event_text}", chain: completed}')
    await installation.start()
    people = [str(number) for number in range(5)]
    runs = [await installation.put(text, user_id=one, chat_id=one) for text in "abc" for one in people]
    await until(lambda: gate.entered == len(people), within=WITHIN)
    await wait_until_parked(installation)
    gate.opened.set()
    for run in runs:
        await installation.over(run)
    for person in people:
        sent = [message.text for message in installation.courier.attempted if message.address == person]
        assert sent == ["a", "b", "c"]


async def test_a_broadcast_holds_the_next_line_up_for_a_minute(bare: Installation) -> None:
    await Channels(bare.stack.store).register("echo", ChannelFacts(100))
    await bare.directory.users.create(TENANT, User(1, contacts={"echo": ["p1"]}))
    await bare.directory.users.create(TENANT, User(42, role="trainer", contacts={"echo": [PERSON]}))
    await bare.directory.groups.create(TENANT, Group("A"), [1])
    await bare.directory.ownerships.own(TENANT, 42, "group", "A")
    bare.actions("""
    - {type: send, text: "to all", to: {group: A}, channels: echo}
    - {type: send, text: "{verdict}", chain: any}
""")
    await bare.start(patience=PATIENCE)
    _, second = await lines(bare, "a", "b")
    await until(lambda: parked(bare), within=WITHIN)
    await wait_until_parked(bare)
    await stays(lambda: is_absent(bare, second))
    await bare.pass_time(2 * MINUTE)
    await until(lambda: bare.exists(second), within=WITHIN)


async def test_a_message_that_is_to_be_sent_later_holds_nothing_up(bare: Installation) -> None:
    bare.actions('    - {type: send, text: "{event_text}", delay: 1d}')
    await bare.start(patience=PATIENCE)
    for run in await lines(bare, "a", "b", "c"):
        assert states(await bare.over(run)) == ["completed"]


async def test_a_run_that_waits_for_hours_outlives_the_expiry_of_its_event(installation: Installation) -> None:
    gate = Gate()
    await start_with_slow_action(installation, gate, "{type: validator, chain: completed}")
    (run,) = await lines(installation, "a")
    await until(lambda: gate.entered == 1, within=WITHIN)
    await wait_until_parked(installation)
    for _ in range(5):
        await installation.pass_time(HOUR)
        await wait_until_parked(installation)
    gate.opened.set()
    assert states(await installation.over(run)) == ["completed"] * 2


class DyingStore(Store):
    """After the first of the two calls that wake a run and take it out of the set, the process does nothing more."""

    async def run(self, name: str, shard: int, *arguments: object) -> object:
        reply = await super().run(name, shard, *arguments)  # type: ignore[arg-type]
        if name == "wake":
            await asyncio.Event().wait()
        return reply

    async def command(self, *words: object) -> object:
        reply = await super().command(*words)  # type: ignore[arg-type]
        if words[0] == "ZREM":
            await asyncio.Event().wait()
        return reply


async def test_a_process_that_dies_between_waking_a_run_and_forgetting_it_leaves_no_run_behind(
    installation: Installation,
) -> None:
    """Taken out of the set first, the run was known to no process any more and slept on."""
    gate = Gate()
    installation.courier.respond = gate.respond
    installation.actions(TWO_ANSWERS)
    first = await installation.start(DyingStore, patience=PATIENCE, lease=timedelta(seconds=1))
    (run,) = await lines(installation, "a")
    await until(lambda: parked(installation), within=WITHIN)
    await wait_until_parked(installation)
    gate.opened.set()
    await until(lambda: len(installation.texts) == 1, within=WITHIN)
    await until(lambda: is_woken_or_forgotten(installation), within=WITHIN)
    await first.kill()
    await installation.start(patience=PATIENCE, lease=timedelta(seconds=1), adopt_every=0.1)
    assert states(await installation.over(run)) == ["completed"] * 2


async def is_woken_or_forgotten(installation: Installation) -> bool:
    waiting = await installation.stack.redis.hget("queue:{0}:states", "events:waiting")
    return int(waiting or 0) == 0 or await parked(installation) == 0
