"""Questions that need a number of confirmations: people are asked wave by wave, in their order."""

from collections.abc import AsyncIterator
from datetime import UTC, timedelta
from typing import Any

import pytest

from core.answers import Answers, OpenQuestions
from core.model.delivery import Accepted
from core.model.hours import QuietHours, TenantQuietHours
from core.model.question import AnswerKind, Need, Option, Question
from core.model.states import Status
from core.redis.constants import AWAITING_MS
from core.redis.keys import KEYS
from tests.core.answers.test_answers import BOT, SHOWS, Asked, asking, respond
from tests.core.answers.test_reminders import pass_time
from tests.support.audited import violations_in
from tests.support.stack import TENANT, FakeCourier, Stack, person
from tests.support.waiting import until

HOUR_MS = 3_600_000
NEEDED = Question(AnswerKind.CHOICE, [Option("yes", "I come"), Option("no", "I do not")], "en", need=Need(2, HOUR_MS))


class Waves:
    """A question for eight people of whom two are needed."""

    def __init__(self, asked: Asked, accepted: Accepted) -> None:
        self.asked = asked
        self.accepted = accepted
        self.answers = Answers(asked.stack.store)
        self.questions = OpenQuestions(asked.stack.store)

    async def have_asked(self, *numbers: int) -> None:
        """Wait until these people were asked, and see that they were asked in their order, and that the next waits."""
        await until(lambda: len(self.asked.courier.attempted) >= len(numbers))
        assert [one.address for one in self.asked.courier.attempted] == [f"p{number}" for number in numbers]
        assert await self.asked.stack.store.command("HGET", str(self.accepted.key), "answers_asked") == str(
            len(numbers)
        )

        sender, _, at = self.accepted.key.suffix.rpartition(":")
        due = KEYS["due"].at(self.accepted.key.shard)
        at_end = await self.asked.stack.store.command("ZSCORE", due, f"{at}.{sender}.{BOT}.{len(numbers)}")
        assert int(at_end) == AWAITING_MS

    async def press(self, number: int, option: int) -> None:
        await self.asked.press(f"p{number}", self.asked.button(f"p{number}", option))


async def waves_of(asked: Asked, question: Question = NEEDED, people: int = 8, **more: Any) -> Waves:
    recipients = [person(number, BOT) for number in range(1, people + 1)]
    return Waves(asked, await asked.stack.deliver(*recipients, channels=(BOT,), question=question, **more))


@pytest.fixture
async def asked(stack: Stack) -> AsyncIterator[Asked]:
    async with asking(stack, FakeCourier(BOT, respond, shows=SHOWS)) as asked:
        yield asked


async def test_who_declines_is_followed_at_once_until_enough_have_confirmed(asked: Asked) -> None:
    waves = await waves_of(asked)
    await waves.have_asked(1, 2)
    await waves.press(1, 1)
    await waves.have_asked(1, 2, 3)
    await waves.press(2, 0)
    await waves.press(3, 0)
    assert await waves.questions.ask_next(waves.accepted.key, TENANT, 1) == ("enough", 0)
    await waves.press(3, 1)  # withdraws
    await waves.have_asked(1, 2, 3, 4)
    await waves.questions.close(waves.accepted.key, TENANT)
    history = await asked.stack.finished(waves.accepted.key)
    outcomes = [one.outcomes[BOT] for one in history.recipients]
    assert [one.status for one in outcomes[4:]] == [Status.SKIPPED] * 4
    assert {one.reason for one in outcomes[4:]} == {"question_closed"}
    assert await asked.totals(waves.accepted) == {"answered": 3, "silent": 1, "unreachable": 4, "yes": 1, "no": 2}


async def test_each_wave_asks_as_many_as_are_missing(asked: Asked) -> None:
    waves = await waves_of(asked)
    await waves.have_asked(1, 2)
    await waves.press(2, 0)
    asked.stack.advance_clock(timedelta(hours=1, seconds=1))
    await waves.have_asked(1, 2, 3)
    assert await waves.questions.ask_next(waves.accepted.key, TENANT, 1) == ("again", 0)
    asked.stack.advance_clock(timedelta(hours=1, seconds=1))
    await waves.have_asked(1, 2, 3, 4)
    await waves.questions.close(waves.accepted.key, TENANT)
    assert await waves.questions.ask_next(waves.accepted.key, TENANT, 3) == ("closed", 0)
    await asked.stack.finished(waves.accepted.key)


async def test_quiet_hours_move_a_wave(stack: Stack) -> None:
    accepted = await stack.deliver(*[person(number, BOT) for number in (1, 2, 3, 4)], channels=(BOT,), question=NEEDED)
    begin, end = (stack.now() + timedelta(minutes=minutes) for minutes in (30, 120))
    quiet = TenantQuietHours(QuietHours(begin.time(), end.time(), UTC))
    for time, asked in ({"hours": 1, "minutes": 1}, "2"), ({"hours": 1, "minutes": 10}, "4"):
        await pass_time(stack, quiet, **time)
        assert await stack.store.command("HGET", str(accepted.key), "answers_asked") == asked


async def test_who_is_about_to_be_asked_is_left_out_when_enough_have_confirmed(stack: Stack) -> None:
    waves = Waves(Asked(stack, FakeCourier(BOT)), await stack.deliver(
        *[person(number, BOT) for number in range(1, 5)], channels=(BOT,), question=NEEDED
    ))  # fmt: skip
    assert await waves.questions.ask_next(waves.accepted.key, TENANT, 1) == ("asked", 2)
    for number in ("1", "2"):
        await waves.answers.enter(waves.accepted.key, TENANT, number, "yes", "anna", f"e{number}")
    courier = FakeCourier(BOT, shows=SHOWS)
    await stack.courier(courier)
    history = await stack.finished(waves.accepted.key)
    assert courier.attempted == []
    reasons = [one.outcomes[BOT].reason for one in history.recipients]
    assert reasons == ["answered", "answered", "enough_answers", "enough_answers"]
    await stack.audit()


async def test_a_cancelled_question_asks_nobody_else(asked: Asked) -> None:
    waves = await waves_of(asked)
    await waves.have_asked(1, 2)
    await asked.stack.deliveries.cancel(waves.accepted.key, TENANT)
    history = await asked.stack.finished(waves.accepted.key)
    assert [one.outcomes[BOT].status for one in history.recipients[2:]] == [Status.CANCELLED] * 6
    assert await waves.questions.ask_next(waves.accepted.key, TENANT, 1) == ("closed", 0)


async def test_the_audit_finds_who_was_asked_before_its_turn(asked: Asked) -> None:
    waves = await waves_of(asked)
    await waves.have_asked(1, 2)
    await until(lambda: asked.stack.store.command("HGET", f"{waves.accepted.key}", "version"))
    await waves.press(2, 0)
    await waves.press(1, 0)
    await asked.stack.store.command("HSET", str(waves.accepted.key), "answers_asked", 1)
    assert [one.rule for one in await violations_in(asked.stack.store)] == ["I29"]
    await asked.stack.store.command("HSET", str(waves.accepted.key), "answers_asked", 2)


async def test_a_question_of_a_later_delivery_asks_in_waves_and_holds_up_no_other_task(asked: Asked) -> None:
    later = asked.stack.now() + timedelta(minutes=30)
    other = await asked.stack.deliver(person(9, BOT), channels=(BOT,), deliver_at=later)
    await waves_of(asked, people=3, deliver_at=later)
    closed = await waves_of(asked, people=3, deliver_at=later)
    await closed.questions.close(closed.accepted.key, TENANT)
    asked.stack.advance_clock(timedelta(minutes=31))
    await asked.stack.finished(other.key)
    await asked.stack.finished(closed.accepted.key)
    await until(lambda: len(asked.courier.attempted) >= 3)
    await asked.stack.have_noted()
    assert sorted(one.address for one in asked.courier.attempted) == ["p1", "p2", "p9"]
    asked.stack.advance_clock(timedelta(hours=1, seconds=1))
    await until(lambda: len(asked.courier.attempted) >= 4)
    assert await violations_in(asked.stack.store) == []


async def test_a_question_that_is_opened_again_asks_nobody_whose_turn_had_not_come(asked: Asked) -> None:
    waves = await waves_of(asked, people=4)
    await waves.have_asked(1, 2)
    await waves.questions.close(waves.accepted.key, TENANT)
    await waves.questions.reopen(waves.accepted.key, TENANT)
    await asked.stack.finished(waves.accepted.key)
    await waves.press(1, 1)
    assert await waves.questions.ask_next(waves.accepted.key, TENANT, 1) == ("asked", 0)
    assert [one.address for one in asked.courier.attempted] == ["p1", "p2"]
