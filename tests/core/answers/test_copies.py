"""The messages of a question in other channels show what was answered, whatever way the answer came."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from core.answers import AnswerLinks, Answers, AnswerTokens, OpenQuestions
from core.answers.copies import Copies, Copy
from core.deliveries.histories.encoding import load_plan
from core.deliveries.histories.reader import HistoryReader
from core.model.delivery import Accepted, Strategy
from core.model.history_key import HistoryKey
from core.model.question import AnswerState, LinkPlace, Pressed
from core.model.states import Reason, Status
from core.queue import QueueClient
from core.updates.answer_worker import AnswerWorker
from core.updates.bot_calls import BotCalls, ButtonChange
from core.updates.events import Events
from couriers.sending.interface import Message, Rejected, Sent
from tests.core.answers.test_answers import BOT, COMING, SHOWS
from tests.support.stack import TENANT, FakeCourier, Stack, person, sent
from tests.support.waiting import until

VK, MAIL = "vk", "mail"


@dataclass
class Screens:
    """What the bots of two channels show. `changes`: (channel, address, message, labels), in their order."""

    stack: Stack
    couriers: dict[str, FakeCourier]
    changes: list[tuple[str, str, str, tuple[str, ...]]] = field(default_factory=list)

    async def ask(self, people: int = 1, **more: Any) -> Accepted:
        recipients = [person(n, *self.couriers) for n in range(1, people + 1)]
        accepted = await self.stack.deliver(*recipients, channels=tuple(self.couriers), question=COMING, **more)
        await self.stack.finished(accepted.key)
        return accepted

    async def press(self, channel: str, address: str, option: int, event: str) -> None:
        """Press a button of the message that an address has got in a channel."""
        (message,) = [one for one in self.couriers[channel].attempted if one.address == address]
        assert message.content
        data = [one.data for row in message.content.inline for one in row][option]
        press = {"id": event, "channel": channel, "kind": "callback", "user_id": address, "chat_id": address,
                 "message_id": f"ref-{address}", "callback_id": event, "callback_data": data}  # fmt: skip
        await Events(QueueClient(self.stack.store), TENANT).put(TENANT, press)

    async def all(self, key: HistoryKey) -> list[Copy]:
        """Return what every message shows when the question is opened again."""
        store = self.stack.store
        return [one async for one in Copies(store, Answers(store)).all(key)]

    async def pressed(self, copy: Copy) -> Pressed:
        """Return what the first button of a message names."""
        return await AnswerTokens(self.stack.store).read(TENANT, copy.channel, copy.address, copy.buttons[0][0].data)

    async def show(self, *expected: tuple[str, str, str, tuple[str, ...]]) -> None:
        """Wait until the messages have shown this since the last call."""
        await until(lambda: len(self.changes) >= len(expected))
        assert sorted(self.changes) == sorted(expected)
        self.changes.clear()


@pytest.fixture
async def screens(stack: Stack) -> AsyncIterator[Screens]:
    couriers = {name: FakeCourier(name, sent, shows=SHOWS) for name in (BOT, VK)}
    couriers[MAIL] = FakeCourier(MAIL, sent)
    for one in couriers.values():
        await stack.courier(one)
    screens, client = Screens(stack, couriers), QueueClient(stack.store)

    def maker(channel: str) -> Any:
        async def make(call: Any) -> bool:
            if isinstance(call, ButtonChange):
                labels = tuple(one.text for row in call.rows for one in row)
                screens.changes.append((channel, str(call.chat_id), str(call.message_id), labels))
            return True

        return make

    presses = AnswerWorker(stack.store, client)
    await presses.open()
    workers = [presses.worker()]
    for channel in (BOT, VK):
        calls = BotCalls(client, TENANT, channel)
        await calls.open()
        workers.append(calls.worker(maker(channel)))
    running = [asyncio.create_task(worker.run()) for worker in workers]
    yield screens
    for worker in workers:
        worker.stop()
    await asyncio.gather(*running)
    await stack.audit()


YES, NO = ("✓ I come", "I do not"), ("I come", "✓ I do not")


async def test_an_answer_from_any_channel_is_shown_in_the_messages_of_the_others(screens: Screens) -> None:
    accepted = await screens.ask()
    await screens.press(BOT, "p1", 0, "e1")
    await screens.show((BOT, "p1", "ref-p1", YES), (VK, "p1", "ref-p1", YES))
    await screens.press(VK, "p1", 1, "e2")
    await screens.show((VK, "p1", "ref-p1", NO), (BOT, "p1", "ref-p1", NO))
    await Answers(screens.stack.store).enter(accepted.key, TENANT, "1", "yes", "dean", "e3")
    await screens.show((VK, "p1", "ref-p1", YES), (BOT, "p1", "ref-p1", YES))
    await screens.press(VK, "p1", 0, "e4")
    await screens.show((VK, "p1", "ref-p1", YES))


async def test_an_answer_by_a_link_is_shown_by_the_bots(stack: Stack, screens: Screens) -> None:
    accepted = await screens.ask()
    answers = Answers(stack.store)
    token = await AnswerTokens(stack.store).sign_link(LinkPlace.of(accepted.key, MAIL, 0, 0, 0))
    await AnswerLinks(stack.store, answers).answer(token, "no", "e1")
    await screens.show((VK, "p1", "ref-p1", NO), (BOT, "p1", "ref-p1", NO))


async def test_the_copy_of_one_of_many_is_found(screens: Screens) -> None:
    accepted = await screens.ask(people=250)
    answers = Answers(screens.stack.store)
    for number in (1, 100, 101, 240, 250):
        await answers.enter(accepted.key, TENANT, str(number), "no", "dean", f"e{number}")
        await screens.show(*((channel, f"p{number}", f"ref-p{number}", NO) for channel in (BOT, VK)))


@pytest.mark.parametrize("strategy", Strategy)
async def test_the_entries_of_one_of_many_are_found_whatever_a_retry_has_added(
    stack: Stack, strategy: Strategy
) -> None:
    """The copies of those behind the middle were lost: the parcels of a retry are not in the order of the others."""
    down = FakeCourier(VK, lambda message: Rejected(Reason.BLOCKED), parcel=2)
    await stack.courier(down)
    people = [person(n, VK) if n < 5 or n > 8 else person(n, BOT) for n in range(1, 13)]
    accepted = await stack.deliver(*people, channels=(VK, BOT), question=COMING, strategy=strategy)
    await stack.courier(FakeCourier(BOT, sent))
    await stack.finished(accepted.key)
    for _ in range(7):
        assert await stack.deliveries.retry(accepted.key, TENANT, [Status.FAILED], ["1"])
        await stack.finished(accepted.key)
    reader = HistoryReader(stack.store)
    plans = load_plan((await reader.read_fields(accepted.key, ["plan"]))["plan"] or "")
    plan = next(one for one in plans if one.channel == VK)
    found = {n: [one.id for one in (await reader.entries_of(accepted.key, plan, n - 1))[1]] for n in range(1, 13)}
    assert found == {n: [n] if VK in one.contacts else [] for n, one in enumerate(people, 1)}


async def test_a_deleted_person_has_no_copy(screens: Screens) -> None:
    accepted, answers = await screens.ask(people=2), Answers(screens.stack.store)
    for number in (1, 2):
        await answers.enter(accepted.key, TENANT, str(number), "no", "dean", f"e{number}")
    await screens.show(*((channel, f"p{n}", f"ref-p{n}", NO) for channel in (BOT, VK) for n in (1, 2)))
    await screens.stack.deliveries.of_person.erase(TENANT, "1")
    copies = Copies(screens.stack.store, answers)
    assert [[one.address for one in await copies.of(accepted.key, number, "")] for number in (0, 1)] == [
        [],
        ["p2", "p2"],
    ]


async def test_a_question_that_is_opened_again_shows_its_buttons_and_takes_answers(screens: Screens) -> None:
    accepted, questions = await screens.ask(2), OpenQuestions(screens.stack.store)
    await screens.press(BOT, "p1", 0, "e1")
    await screens.show((BOT, "p1", "ref-p1", YES), (VK, "p1", "ref-p1", YES))
    assert not await questions.reopen(accepted.key, TENANT)
    await questions.close(accepted.key, TENANT)
    await screens.show(*[(channel, address, f"ref-{address}", ()) for channel in (BOT, VK) for address in ("p1", "p2")])
    await screens.press(VK, "p2", 1, "e2")
    await until(lambda: (VK, "p2", "ref-p2", NO) in screens.changes)
    screens.changes.clear()
    assert await questions.reopen(accepted.key, TENANT)
    shown = [(channel, to, f"ref-{to}", labels) for channel in (BOT, VK) for to, labels in (("p1", YES), ("p2", NO))]
    await until(lambda: set(shown) <= set(screens.changes))
    screens.changes.clear()
    await screens.press(VK, "p2", 1, "e3")
    await until(lambda: (BOT, "p2", "ref-p2", NO) in screens.changes)
    totals = (await screens.stack.history(accepted.key)).answers
    assert totals
    assert (totals.states[AnswerState.ANSWERED], totals.states[AnswerState.LATE], totals.options) == (
        2,
        0,
        {"yes": 1, "no": 1},
    )
    await questions.close(accepted.key, TENANT)
    await until(lambda: len([one for one in screens.changes if not one[3]]) == 4)


async def test_both_accounts_of_a_person_show_what_was_answered_elsewhere(screens: Screens) -> None:
    both = person(1, VK, **{BOT: ["p1", "p1b"]})
    accepted = await screens.stack.deliver(both, channels=(BOT, VK), question=COMING)
    await screens.stack.finished(accepted.key)
    await screens.press(VK, "p1", 0, "e1")
    await screens.show((VK, "p1", "ref-p1", YES), (BOT, "p1", "ref-p1", YES), (BOT, "p1b", "ref-p1b", YES))
    copies = await Copies(screens.stack.store, Answers(screens.stack.store)).of(accepted.key, 0, VK)
    assert [(one.address, (await screens.pressed(one)).contact) for one in copies] == [("p1", 0), ("p1b", 1)]


async def test_each_of_many_gets_its_own_buttons_again(screens: Screens) -> None:
    accepted = await screens.ask(people=120)
    copies = await screens.all(accepted.key)
    pressed = [await screens.pressed(one) for one in copies]
    found = [(one.channel, one.address, what.number) for one, what in zip(copies, pressed, strict=True)]
    assert sorted(found) == sorted((channel, f"p{n + 1}", n) for channel in (BOT, VK) for n in range(120))
    parcels = {what.number: what.parcel for what in pressed}
    assert (parcels[0], parcels[99], parcels[100], parcels[119]) == (0, 0, 1, 1)


async def test_after_the_closing_no_message_shows_buttons_of_a_late_answer(screens: Screens) -> None:
    accepted, store = await screens.ask(), screens.stack.store
    answers = Answers(store)
    questions = OpenQuestions(store)
    await answers.enter(accepted.key, TENANT, "1", "yes", "dean", "e1")
    copies = Copies(store, answers)
    assert {one.channel for one in await copies.of(accepted.key, 0, "")} == {BOT, VK}
    await questions.close(accepted.key, TENANT)
    assert await copies.of(accepted.key, 0, "") == []


async def test_the_buttons_of_a_long_message_stand_below_its_last_part(screens: Screens) -> None:
    def in_parts(message: Message) -> Sent:
        return Sent(f"first-{message.address},last-{message.address}")

    await screens.stack.courier(FakeCourier("max", in_parts, shows=SHOWS))
    accepted = await screens.stack.deliver(person(1, "max"), channels=("max",), question=COMING)
    await screens.stack.finished(accepted.key)
    assert [one.message for one in await screens.all(accepted.key)] == ["last-p1"]
