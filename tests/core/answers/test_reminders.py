"""Reminders and escalation: only those are asked again whose question is open in the step that sends."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import msgspec
import pytest

from core.answers import Answers, OpenQuestions
from core.deliveries.histories.parcels import outcome_field
from core.deliveries.histories.projection import waves_of
from core.directory import Directory
from core.model.delivery import Accepted, Recipient, Strategy
from core.model.history_key import Id
from core.model.hours import QuietHours, TenantQuietHours
from core.model.people import User, UserChange
from core.model.question import AnswerKind, AnswerState, Escalate, Option, Question, Remind
from core.model.states import Reason, Status
from core.queue import QueueClient
from core.redis.keys import KEYS
from core.updates.answer_worker import AnswerWorker
from couriers.sending.interface import NEVER, Deferred, Message, Outcome, Rejected, Unknown
from tests.support.audited import violations_in
from tests.support.stack import QUICK, TENANT, FakeCourier, Stack, person, sent
from tests.support.waiting import until

HOUR = 3_600_000
COMING = [Option("yes", "Приду"), Option("no", "Не приду")]
REMIND = Question(AnswerKind.CHOICE, COMING, "ru", remind=Remind(12 * HOUR, 24 * HOUR, 2))
PLAIN = Question(AnswerKind.CHOICE, COMING, "ru")
ESCALATE = Question(AnswerKind.CHOICE, COMING, "ru", escalate=Escalate(2 * HOUR, ["sms"]))


async def answer(stack: Stack, accepted: Accepted, recipient: int, value: str = "yes") -> None:
    await Answers(stack.store).enter(accepted.key, TENANT, str(recipient), value, "anna", f"e{recipient}")


async def pass_time(stack: Stack, quiet_hours: TenantQuietHours | None = None, **time: float) -> None:
    """Let time pass, and do what has been planned for it."""
    stack.advance_clock(timedelta(**time))
    await stack.tick()
    client = QueueClient(stack.store)
    presses = AnswerWorker(stack.store, client, quiet_hours)
    await presses.open()
    worker = presses.worker()
    running = asyncio.create_task(worker.run())
    await until(lambda: is_idle(stack))
    worker.stop()
    await running


async def is_idle(stack: Stack) -> bool:
    counts = await stack.store.command("HGETALL", "queue:{0}:tally")
    names = ("answers:ready", "answers:taken", "answers:locked")
    return not any(int(counts.get(name, 0)) for name in names)


Seen = Mapping[Id, list[tuple[int, Status, str | None]]]


async def reminded(stack: Stack, accepted: Accepted) -> Seen:
    """Return what became of the reminders by recipient, without those who have got none."""
    history = await stack.history(accepted.key)
    return {
        one.id: [(reminder.wave, reminder.outcome.status, reminder.outcome.reason) for reminder in one.reminders]
        for one in history.recipients
        if one.reminders
    }


def texts(courier: FakeCourier, address: str) -> list[str]:
    return [one.text for one in courier.attempted if one.address == address]


@pytest.mark.parametrize("remembers", [timedelta.max, NEVER])
async def test_only_who_is_open_is_reminded_and_the_first_outcome_stays(stack: Stack, remembers: timedelta) -> None:
    courier = FakeCourier(remembers=remembers)
    await stack.courier(courier)
    accepted = await stack.deliver(person(1), person(2), question=REMIND)
    await stack.finished(accepted.key)
    await answer(stack, accepted, 1)
    before = (await stack.history(accepted.key)).recipients
    await pass_time(stack, hours=13)
    sent_once: Seen = {2: [(1, Status.SENT, None)]}
    await until(lambda: is_reminded(stack, accepted, sent_once))
    assert texts(courier, "p1") == ["hello"]
    assert texts(courier, "p2") == ["hello", "Напоминание:\nhello"]
    after = await stack.history(accepted.key)
    assert [one.outcomes for one in after.recipients] == [one.outcomes for one in before]
    assert [(one.people, one.by) for one in after.reminders.sent] == [(1, "")]
    assert after.reminders.next_at == after.reminders.sent[0].at + timedelta(hours=24)
    await pass_time(stack, hours=24)
    await until(lambda: is_reminded(stack, accepted, {2: [(1, Status.SENT, None), (2, Status.SENT, None)]}))
    await pass_time(stack, hours=48)
    assert len(texts(courier, "p2")) == 3
    assert (await stack.history(accepted.key)).reminders.next_at is None
    await stack.audit()


async def test_a_reminder_comes_in_the_hours_that_its_recipient_wants(stack: Stack) -> None:
    courier = FakeCourier()
    await stack.courier(courier)
    begin = stack.now() - timedelta(minutes=30)
    hours = f"{begin:%H:%M}-{begin + timedelta(hours=1):%H:%M} UTC"
    daily = msgspec.structs.replace(person(1), hours=hours)
    accepted = await stack.deliver(daily, person(2), question=PLAIN)
    await stack.finished(accepted.key)
    stack.advance_clock(timedelta(hours=2))
    assert await OpenQuestions(stack.store).remind(accepted.key, TENANT, by="anna") == ("reminded", 2)
    await until(lambda: is_reminded(stack, accepted, {2: [(1, Status.SENT, None)]}))
    stack.advance_clock(timedelta(hours=22))
    await stack.tick()
    await until(lambda: len(texts(courier, "p1")) == 2)
    await stack.audit()


async def is_reminded(stack: Stack, accepted: Accepted, wanted: Seen) -> bool:
    return await reminded(stack, accepted) == wanted


@pytest.mark.parametrize("remembers", [timedelta.max, NEVER])
async def test_who_answers_while_a_reminder_is_under_way_gets_none(stack: Stack, remembers: timedelta) -> None:
    """The answer of the second person comes when the courier has the parcel and is sending to the first."""
    accepted: Accepted

    async def respond(message: Message) -> Outcome:
        if message.text.startswith("Напоминание") and message.address == "p1":
            await answer(stack, accepted, 2)
        return sent(message)

    courier = FakeCourier(respond=respond, remembers=remembers)
    await stack.courier(courier, replace(QUICK, concurrency=1))
    accepted = await stack.deliver(person(1), person(2), question=PLAIN)
    await stack.finished(accepted.key)
    assert await OpenQuestions(stack.store).remind(accepted.key, TENANT, by="anna") == ("reminded", 2)
    await until(
        lambda: is_reminded(stack, accepted, {1: [(1, Status.SENT, None)], 2: [(1, Status.SKIPPED, Reason.ANSWERED)]})
    )
    assert texts(courier, "p2") == ["hello"]
    await stack.audit()


async def test_a_reminder_that_is_tried_again_does_not_reach_who_has_answered_meanwhile(stack: Stack) -> None:
    accepted: Accepted

    async def respond(message: Message) -> Outcome:
        if not message.text.startswith("Напоминание"):
            return sent(message)
        await answer(stack, accepted, 1)
        return Deferred(Reason.PROVIDER_DOWN, timedelta(0))

    courier = FakeCourier(respond=respond)
    await stack.courier(courier)
    accepted = await stack.deliver(person(1), question=PLAIN)
    await stack.finished(accepted.key)
    await OpenQuestions(stack.store).remind(accepted.key, TENANT)
    await until(lambda: is_reminded(stack, accepted, {1: [(1, Status.SKIPPED, Reason.ANSWERED)]}))
    assert len(texts(courier, "p1")) == 2
    await stack.audit()


async def test_a_reminder_without_a_reply_is_no_crash_although_its_person_answers_before_it_is_tried_again(
    stack: Stack,
) -> None:
    """It may have arrived, and no process has died. The answer comes when the courier tries the first one again."""
    accepted: Accepted
    reminders: list[str] = []

    async def respond(message: Message) -> Outcome:
        if not message.text.startswith("Напоминание"):
            return sent(message)
        reminders.append(message.address)
        if reminders == ["p1", "p2", "p1"]:
            await answer(stack, accepted, 2)
            return sent(message)
        return Unknown("no reply")

    await stack.courier(FakeCourier(respond=respond), replace(QUICK, concurrency=1))
    accepted = await stack.deliver(person(1), person(2), question=PLAIN)
    await stack.finished(accepted.key)
    await OpenQuestions(stack.store).remind(accepted.key, TENANT)
    unknown: list[tuple[int, Status, str | None]] = [(1, Status.UNKNOWN, Reason.ANSWER_LOST)]
    await until(lambda: is_reminded(stack, accepted, {1: [(1, Status.SENT, None)], 2: unknown}))
    assert reminders == ["p1", "p2", "p1"]
    await stack.audit()


@pytest.mark.parametrize("why", ["all_answered", "unreached", "unwanted"])
async def test_a_reminder_that_reaches_nobody_says_why(stack: Stack, why: str) -> None:
    """It said 0."""
    users, questions = Directory(stack.store).users, OpenQuestions(stack.store)
    await stack.courier(FakeCourier(respond=lambda one: Rejected(Reason.BLOCKED) if one.address == "p2" else sent(one)))
    await users.create(TENANT, User(1, contacts={"echo": ["p1"]}))
    accepted = await stack.deliver(person(1), *([person(2)] if why == "unreached" else []), question=PLAIN)
    await stack.finished(accepted.key)
    if why == "unwanted":
        await users.update(TENANT, 1, UserChange(opt_out=["echo"]))
    else:
        await Answers(stack.store).enter(accepted.key, TENANT, "1", "yes", "anna", "e1")
    assert await questions.remind(accepted.key, TENANT) == ("reminded", 0)
    assert await questions.why_nobody(accepted.key, TENANT) == why


async def test_a_reminder_by_hand_is_one_step_and_has_its_limits(stack: Stack) -> None:
    await stack.courier(FakeCourier())
    questions = OpenQuestions(stack.store)
    accepted = await stack.deliver(person(1), question=PLAIN)
    await stack.finished(accepted.key)
    results = await asyncio.gather(*(questions.remind(accepted.key, TENANT, wave=1) for _ in range(5)))
    assert sorted(result for result, _ in results) == ["again"] * 4 + ["reminded"]
    for wave in (2, 3):
        assert await questions.remind(accepted.key, TENANT) == ("reminded", 1), wave
    assert await questions.remind(accepted.key, TENANT) == ("enough", 0)
    closed = await stack.deliver(person(1), question=PLAIN)
    await stack.finished(closed.key)
    await questions.close(closed.key, TENANT)
    assert await questions.remind(closed.key, TENANT) == ("closed", 0)
    planned = await stack.deliver(person(1), question=PLAIN, deliver_at=stack.now() + timedelta(hours=1))
    assert await questions.remind(planned.key, TENANT) == ("unsent", 0)


async def test_quiet_hours_move_a_planned_reminder(stack: Stack) -> None:
    await stack.courier(FakeCourier())
    accepted = await stack.deliver(person(1), question=REMIND)
    await stack.finished(accepted.key)
    planned = stack.now() + timedelta(hours=12)
    day = time((planned.hour - 1) % 24), time((planned.hour + 3) % 24)
    quiet = TenantQuietHours(QuietHours(*day, UTC))
    await pass_time(stack, quiet, hours=12, minutes=1)
    assert await reminded(stack, accepted) == {}
    await pass_time(stack, quiet, hours=4, minutes=10)
    await until(lambda: is_reminded(stack, accepted, {1: [(1, Status.SENT, None)]}))
    (wave,) = (await stack.history(accepted.key)).reminders.sent
    assert isinstance(wave.at, datetime)
    assert not quiet.of(TENANT).contain(wave.at)  # type: ignore[union-attr]


async def test_a_person_is_reminded_once_in_the_first_channel_that_has_reached_it(stack: Stack) -> None:
    couriers = [FakeCourier(channel) for channel in ("echo", "vk")]
    for courier in couriers:
        await stack.courier(courier)
    accepted = await stack.deliver(person(1, "echo", "vk"), person(2, "vk"), channels=("echo", "vk"), question=PLAIN)
    await stack.finished(accepted.key)
    await OpenQuestions(stack.store).remind(accepted.key, TENANT)
    await until(lambda: is_reminded(stack, accepted, {1: [(1, Status.SENT, None)], 2: [(1, Status.SENT, None)]}))
    assert [len(texts(courier, "p1")) for courier in couriers] == [2, 1]
    await stack.audit()


async def test_who_has_opted_out_or_is_blocked_gets_no_reminder(stack: Stack) -> None:
    users = Directory(stack.store).users
    for number in (1, 2, 3):
        await users.create(TENANT, User(number, "Anna"))
    await stack.courier(FakeCourier())
    accepted = await stack.deliver(person(1), person(2), person(3), question=PLAIN)
    await stack.finished(accepted.key)
    await users.update(TENANT, 1, UserChange(opt_out=("echo",)))
    await users.update(TENANT, 2, UserChange(blocked=True))
    assert await OpenQuestions(stack.store).remind(accepted.key, TENANT) == ("reminded", 1)
    await until(lambda: is_reminded(stack, accepted, {3: [(1, Status.SENT, None)]}))


@pytest.mark.parametrize("planned", [False, True])
async def test_no_reminder_goes_to_an_address_that_is_another_persons_by_now(stack: Stack, planned: bool) -> None:
    """Another address of the person is reminded, and one that the directory never had."""
    users, courier = Directory(stack.store).users, FakeCourier()
    for number in (1, 2):
        await users.create(TENANT, User(number, contacts={"echo": [f"p{number}", f"q{number}"]}))
    await users.create(TENANT, User(9))
    await stack.courier(courier)
    people = [Recipient(1, contacts={"echo": ["p1"]}), Recipient(2, contacts={"echo": ["p2", "q2"]}), person(3)]
    accepted = await stack.deliver(*people, question=REMIND)
    await stack.finished(accepted.key)
    for number in (1, 2):
        await users.update(TENANT, number, UserChange(contacts={"echo": [f"q{number}"]}))
    await users.update(TENANT, 9, UserChange(contacts={"echo": ["p1", "p2"]}))
    if planned:
        await pass_time(stack, hours=13)
    else:
        assert await OpenQuestions(stack.store).remind(accepted.key, TENANT) == ("reminded", 2)
    await until(lambda: is_reminded(stack, accepted, {one: [(1, Status.SENT, None)] for one in (2, 3)}))
    assert sorted(courier.addresses) == ["p1", "p2", "p3", "p3", "q2", "q2"]


async def test_who_blocks_the_bot_after_the_question_stays_open_and_is_reached_no_more(stack: Stack) -> None:
    blocked: set[str] = set()

    def refuse(message: Message) -> Outcome:
        return Rejected(Reason.BLOCKED) if message.address in blocked else sent(message)

    await stack.courier(FakeCourier(respond=refuse))
    accepted = await stack.deliver(person(1), question=PLAIN)
    await stack.finished(accepted.key)
    blocked.add("p1")
    assert await OpenQuestions(stack.store).remind(accepted.key, TENANT) == ("reminded", 1)
    await until(lambda: is_reminded(stack, accepted, {1: [(1, Status.FAILED, Reason.BLOCKED)]}))
    later = await stack.deliver(person(1), question=PLAIN)
    await stack.finished(later.key)
    found = [(await stack.history(one.key)).recipients[0] for one in (accepted, later)]
    states = [(one.outcomes["echo"].status, one.answer and one.answer.state) for one in found]
    assert states == [(Status.SENT, AnswerState.OPEN), (Status.FAILED, AnswerState.UNREACHABLE)]
    await stack.audit()


async def test_a_reminder_that_could_not_be_sent_ends_with_its_question(stack: Stack) -> None:
    runtime = await stack.courier(FakeCourier())
    until_ms = round((stack.now() + timedelta(hours=2)).timestamp() * 1000)
    accepted = await stack.deliver(person(1), question=msgspec.structs.replace(PLAIN, until=until_ms))
    await stack.finished(accepted.key)
    await stack.stop(runtime)
    assert await OpenQuestions(stack.store).remind(accepted.key, TENANT) == ("reminded", 1)
    await pass_time(stack, hours=2, minutes=1)
    assert await stack.take("echo") == []


async def test_a_deleted_person_gets_no_reminder(stack: Stack) -> None:
    courier = FakeCourier()
    runtime = await stack.courier(courier)
    accepted = await stack.deliver(person(1), question=PLAIN)
    await stack.finished(accepted.key)
    await stack.stop(runtime)
    await OpenQuestions(stack.store).remind(accepted.key, TENANT)
    await stack.deliveries.of_person.erase(TENANT, "1")
    again = FakeCourier()
    await stack.courier(again)
    await until(lambda: is_reminded(stack, accepted, {1: [(1, Status.SKIPPED, Reason.OPTED_OUT)]}))
    assert again.attempted == []
    await stack.audit()


async def test_the_audit_finds_a_reminder_of_who_had_answered_and_one_too_many(stack: Stack) -> None:
    await stack.courier(FakeCourier())
    accepted = await stack.deliver(person(1), person(2), question=PLAIN)
    await stack.finished(accepted.key)
    await answer(stack, accepted, 1)
    stack.advance_clock(timedelta(minutes=1))
    assert await OpenQuestions(stack.store).remind(accepted.key, TENANT) == ("reminded", 1)
    await until(lambda: is_reminded(stack, accepted, {2: [(1, Status.SENT, None)]}))
    history, command = str(accepted.key), stack.store.command
    outcomes = KEYS["outcomes"].at(accepted.key.shard, accepted.key.suffix)
    wave = await command("HGET", history, "answers_reminders")
    (label,) = waves_of(wave)[0].labels
    sent_to_other = await command("HGET", outcomes, outcome_field(2, label, 0))
    await command("HSET", outcomes, outcome_field(1, label, 0), sent_to_other)
    assert "I27" in {one.rule for one in await violations_in(stack.store)}
    await command("HDEL", outcomes, outcome_field(1, label, 0))
    await stack.audit()
    await command("HSET", history, "answers_reminders", "\n".join([wave] * 4))
    assert "I27" in {one.rule for one in await violations_in(stack.store)}
    await command("HSET", history, "answers_reminders", wave)


@pytest.mark.parametrize("strategy", Strategy)
async def test_a_question_escalates_to_those_who_have_not_answered(stack: Stack, strategy: Strategy) -> None:
    """The first has answered, the second has got it and is silent, the third was never reached."""

    def refuse(message: Message) -> Outcome:
        return sent(message) if message.address != "p3" else Deferred(Reason.PROVIDER_DOWN, timedelta(days=3))

    sms = FakeCourier("sms")
    await stack.courier(FakeCourier(respond=refuse))
    await stack.courier(sms)
    people = [person(number, "echo", "sms") for number in (1, 2, 3)]
    accepted = await stack.deliver(
        *people, channels=("echo", "sms"), question=ESCALATE, strategy=strategy,
        expires_at=stack.now() + timedelta(days=1),
    )  # fmt: skip
    await until(lambda: has_answer_open(stack, accepted))
    await answer(stack, accepted, 1)
    assert sms.attempted == []
    await pass_time(stack, hours=2, minutes=1)
    await until(lambda: len(sms.attempted) == 2)
    await stack.have_noted()
    await pass_time(stack, days=1)
    history = await stack.finished(accepted.key)
    outcomes = [(one.outcomes["sms"].status, one.outcomes["sms"].reason) for one in history.recipients]
    assert outcomes == [(Status.SKIPPED, Reason.ANSWERED), (Status.SENT, None), (Status.SENT, None)]
    assert sorted(sms.addresses) == ["p2", "p3"]
    await stack.audit()


async def has_answer_open(stack: Stack, accepted: Accepted) -> bool:
    recipients = (await stack.history(accepted.key)).recipients
    return [one.outcomes["echo"].status for one in recipients[:2]] == [Status.SENT] * 2
