"""Schedules on a real server: each moment once per person, over restarts and several processes (C-96)."""

from datetime import UTC, datetime, timedelta

import pytest

from core.model.clock import in_ms
from core.redis.keys import KEYS
from scenarios.execution.schedules import MADE_UP_FOR
from tests.scenarios.execution.conftest import WITHIN, Installation
from tests.support.stack import TENANT
from tests.support.waiting import until

SCHEDULE = """
hourly: {each: "0 * * * *", for: people, when: {person.room: {rule: empty}}, scenario: s.remind}
exam: {before: person.exam, by: 1d, scenario: s.exam}
"""
SCENARIOS = """
main: {actions: [{type: set, variables: {person.room: "{event_text}", person.exam: "{event_text|value:}"}}]}
exam_at: {actions: [{type: set, variables: {person.room: x, person.exam: "{event_text}"}}]}
remind: {actions: [{type: send, text: "remind {user_id}"}]}
exam: {actions: [{type: send, text: "exam {user_id}"}]}
"""


@pytest.fixture
def scheduled(installation: Installation) -> Installation:
    installation.write("variables.yaml", "person: {room: text, exam: date}").write("schedule.yaml", SCHEDULE)
    installation.write("triggers.yaml", 'text: {exact: {x: s.main}, contains: {"202": s.exam_at}, "*": s.remind}')
    installation.write("scenarios/s.yaml", SCENARIOS)
    return installation


@pytest.mark.parametrize("shards", [16])
async def test_a_moment_starts_one_run_for_each_person_also_with_two_processes(scheduled: Installation) -> None:
    await scheduled.start()
    await scheduled.start()
    await scheduled.play("hello", user_id="1", chat_id="1")
    await scheduled.play("hello", user_id="2", chat_id="2")
    await scheduled.play("x", user_id="3", chat_id="3")
    await until(lambda: len(scheduled.texts) == 2, within=WITHIN)
    await scheduled.stack.have_noted()
    await scheduled.pass_time(timedelta(hours=1))
    await until(lambda: len(scheduled.texts) == 4, within=WITHIN)
    await scheduled.stack.have_noted()
    third = await scheduled.start()
    await third.stop()
    await scheduled.pass_time(timedelta(hours=1))
    await until(lambda: len(scheduled.texts) == 6, within=WITHIN)
    assert sorted(scheduled.texts) == ["remind 1"] * 3 + ["remind 2"] * 3


async def test_a_person_is_due_before_its_own_date_once(scheduled: Installation) -> None:
    await scheduled.start()
    exam = datetime.now(UTC) + timedelta(days=1, minutes=7)
    await scheduled.play(exam.isoformat(), user_id="1", chat_id="1")
    for _ in range(4):
        await scheduled.pass_time(timedelta(minutes=5))
        await scheduled.play("wait", user_id="9", chat_id="9")
    assert scheduled.texts.count("exam 1") == 1
    mark = KEYS["schedule_looked"].at(0, TENANT, "exam")
    assert await scheduled.stack.store.command("PTTL", mark) > 2 * in_ms(MADE_UP_FOR) - in_ms(timedelta(hours=1))


async def test_a_date_that_is_set_too_late_starts_its_scenario_once(scheduled: Installation) -> None:
    await scheduled.start()
    exam = datetime.now(UTC) + timedelta(hours=23)
    await scheduled.play(exam.isoformat(), user_id="1", chat_id="1")
    for _ in range(4):
        await scheduled.pass_time(timedelta(minutes=5))
        await scheduled.play("wait", user_id="9", chat_id="9")
    assert scheduled.texts.count("exam 1") == 1
