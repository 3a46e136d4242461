"""Reminders in real processes, which are killed between the planned moment and the wave, and between the wave and its
sending: a planned reminder goes out once, and to nobody who has answered.
"""

import pytest

from core.answers import Answers, OpenQuestions
from core.model.question import AnswerKind, Option, Question, Remind
from core.model.states import Status
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.system.crash.installation import MAX, TELEGRAM_BOT, Channel, Installation, person

SOON = Question(AnswerKind.CONFIRM, [Option("read", "Прочитано")], "ru", remind=Remind(after=300, every=1, most=1))
REMIND = b"_remind\r\n"
"""Bytes in the request that makes a wave."""


@pytest.mark.parametrize("point", ["between moment and wave", "between wave and its reply"])
async def test_a_planned_reminder_survives_a_kill_and_goes_out_once(installation: Installation, point: str) -> None:
    link, settings = await installation.link_to_server()
    api = installation.start_api(**settings)
    await installation.courier(TELEGRAM_BOT)
    await api.ready()
    (link.block_requests if point == "between moment and wave" else link.block_replies)(REMIND)
    accepted = await installation.deliver(person(1, TELEGRAM_BOT), person(2, TELEGRAM_BOT), question=SOON)
    await installation.finished(accepted)
    await Answers(installation.core.store).enter(accepted.key, TENANT, "1", "read", "anna", "e")
    await until(lambda: link.blocked)
    api.kill()
    link.cut()
    await installation.end_leases()
    await installation.start_api().ready()
    await until(installation.is_empty)
    history = await installation.core.history(accepted.key)
    assert len(history.reminders.sent) == 1
    outcomes = [[one.outcome.status for one in recipient.reminders] for recipient in history.recipients]
    # The first has answered before the wave, or between the wave and its sending.
    assert outcomes[1] == [Status.SENT]
    assert outcomes[0] in ([], [Status.SKIPPED])
    assert dict(installation.copies(TELEGRAM_BOT)) == {TELEGRAM_BOT.address(1): 1, TELEGRAM_BOT.address(2): 2}
    await installation.audit()


@pytest.mark.parametrize("channel", [TELEGRAM_BOT, MAX], ids=lambda channel: channel.name)
async def test_a_killed_courier_doubles_no_reminder(installation: Installation, channel: Channel) -> None:
    """It is killed when the provider has the reminder, and the person answers before the next courier comes."""
    link, settings = await installation.link_to(channel)
    courier = await installation.courier(channel, **settings)
    plain = Question(SOON.kind, SOON.options, "ru")
    accepted = await installation.deliver(person(1, channel), question=plain)
    await installation.finished(accepted)
    before = (await installation.core.history(accepted.key)).recipients[0].outcomes
    link.block_replies()
    answers = Answers(installation.core.store)
    questions = OpenQuestions(installation.core.store)
    assert await questions.remind(accepted.key, TENANT) == ("reminded", 1)
    await until(lambda: installation.copies(channel).total() == 2)
    courier.kill()
    link.cut()
    await answers.enter(accepted.key, TENANT, "1", "read", "anna", "e")
    await installation.start_api().ready()  # shows the answer in the messages
    await installation.courier(channel)
    await until(installation.is_empty)
    (recipient,) = (await installation.core.history(accepted.key)).recipients
    assert [one.outcome.status for one in recipient.reminders] == [Status.UNKNOWN]
    assert recipient.outcomes == before
    assert installation.copies(channel).total() == 2
    await installation.audit()
