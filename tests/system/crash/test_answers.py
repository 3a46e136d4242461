"""Presses that answer a question, in the real processes of three channels: a process that is killed between the press
and the answer, or between the answer and the change of the message, loses nothing and counts nothing twice.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from core.answers import Answers, OpenQuestions
from core.directory import Directory
from core.model.delivery import Accepted, Sender
from core.model.people import User
from core.model.question import AnswerKind, AnswerState, GivenAnswer, Need, Option, Question
from core.model.states import Reason, Status
from tests.support.replica_set import ReplicaSet
from tests.support.stack import TENANT, FakeCourier, sent
from tests.support.waiting import until
from tests.system.crash.installation import EMAIL, MAX, SMS, TELEGRAM_BOT, VK, Channel, Installation, person
from tests.system.crash.test_storm_of_answers import repeated
from tests.system.failover.replica_set_blows import ReplicaSetBlows

READ = Question(AnswerKind.CONFIRM, [Option("read", "Прочитано")], "ru")
WITHIN = 60.0
ANSWER, ENQUEUE = b"_answer\r\n", b"_enqueue\r\n"
"""Bytes in the request that counts an answer, and that stores a delivery."""

Button = Mapping[str, Any]


class People:
    """The side of the people in one channel of the sandbox."""

    def __init__(self, installation: Installation, channel: Channel) -> None:
        self._installation = installation
        self._channel = channel

    def message(self, number: int) -> Mapping[str, Any] | None:
        """Return the message that a person has got, with its buttons."""
        address, sandbox = self._channel.address(number), self._installation.sandbox
        if self._channel is VK:
            received = self._installation.state.inbox("vk", address)
            return sandbox.vk.people.shown(address, received[0].reference) if received else None
        people = sandbox.bot_api.people if self._channel is TELEGRAM_BOT else sandbox.max.people
        found = [one for one in people.shown(int(address))["messages"] if one["from"] == "bot"]
        return found[0] if found else None

    def labels(self, number: int) -> list[str]:
        message = self.message(number) or {}
        return [button["text"] for row in message.get("buttons", ()) for button in row]

    async def press(self, number: int) -> None:
        """Press the only button of the message."""
        await until(lambda: self.labels(number), within=WITHIN)
        message, address, sandbox = self.message(number), self._channel.address(number), self._installation.sandbox
        assert message
        (label,) = self.labels(number)
        presses: Mapping[str, Callable[[], str]] = {
            TELEGRAM_BOT.name: lambda: sandbox.bot_api.people.press(int(address), message["id"], label),
            VK.name: lambda: sandbox.vk.people.press(address, message["number"], label),
            MAX.name: lambda: sandbox.max.people.press(int(address), message["id"], label),
        }
        presses[self._channel.name]()


PROCESS = {TELEGRAM_BOT: "telegram", VK: "vk", MAX: "max"}


async def ask(installation: Installation, channel: Channel, **options: Any) -> tuple[Accepted, People]:
    """Start the courier and the bot of a channel, and ask two people."""
    bot = installation.start("bot", PROCESS[channel], ADA_BOT_TENANT=TENANT)
    await installation.courier(channel)
    await bot.ready()
    people = People(installation, channel)
    if channel is MAX:
        for number in (1, 2):
            installation.sandbox.max.people.start(int(MAX.address(number)))
    return await installation.deliver(person(1, channel), person(2, channel), question=READ, **options), people


async def assert_counted_once(installation: Installation, channel: Channel, accepted: Accepted, people: People) -> None:
    await until(lambda: people.labels(1) == ["✓ Прочитано"], within=WITHIN)
    history = await installation.core.history(accepted.key)
    assert history.answers
    assert {state: n for state, n in history.answers.states.items() if n} == {
        AnswerState.ANSWERED: 1,
        AnswerState.OPEN: 1,
    }
    first = history.recipients[0]
    assert (first.outcomes[channel.name].status, first.outcomes[channel.name].reason) == (Status.READ, Reason.ANSWERED)
    assert first.answer
    assert first.answer.row
    assert first.answer.row.revisions == ()
    await assert_nothing_is_left(installation, channel)


async def assert_nothing_is_left(installation: Installation, channel: Channel) -> None:
    """In MAX the people have written /start, which waits for `./ada scenarios`: it does not run here."""
    written = ["events:ready"] if channel is MAX else []
    await until(lambda: installation.is_empty(*written), within=WITHIN)
    await installation.audit()


@pytest.mark.parametrize("channel", [TELEGRAM_BOT, VK, MAX], ids=lambda channel: channel.name)
async def test_a_press_is_counted_and_shown_in_each_channel(installation: Installation, channel: Channel) -> None:
    api = installation.start_api(ADA_BOT_TENANT=TENANT)
    accepted, people = await ask(installation, channel)
    await api.ready()
    await people.press(1)
    await assert_counted_once(installation, channel, accepted, people)


@pytest.mark.parametrize("channel", [TELEGRAM_BOT, VK, MAX], ids=lambda channel: channel.name)
async def test_a_process_killed_between_closing_and_result_leaves_both_to_the_next(
    installation: Installation, channel: Channel
) -> None:
    """The sender is the third person of the directory."""
    link, settings = await installation.link_to_server()
    api = installation.start_api(**settings)
    address = [channel.address(3)]
    await Directory(installation.core.store).users.create(TENANT, User(3, "Anna", contacts={channel.name: address}))
    accepted, people = await ask(installation, channel, sender=Sender(3))
    await api.ready()
    if channel is MAX:
        installation.sandbox.max.people.start(int(MAX.address(3)))
    await until(lambda: people.labels(1) and people.labels(2), within=WITHIN)
    link.block_requests(ENQUEUE)
    await OpenQuestions(installation.core.store).close(accepted.key, TENANT)
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    await installation.end_leases()
    await installation.start_api().ready()
    await until(lambda: not people.labels(1) and not people.labels(2), within=WITHIN)
    await assert_nothing_is_left(installation, channel)
    assert (people.message(1) or {})["text"] == "hello"
    got = [one.text for one in installation.state.inbox(channel.name) if one.address == channel.address(3)]
    assert [text for text in got if "hello" in text] == [
        "Приём ответов закончен: «hello»\nПрочитано: 0\nНе ответили: 2"
    ]


async def test_a_process_killed_between_giving_a_place_and_telling_leaves_it_to_the_next(
    installation: Installation,
) -> None:
    link, settings = await installation.link_to_server()
    api = installation.start_api(**settings)
    await installation.courier(TELEGRAM_BOT)
    await api.ready()
    question = Question(AnswerKind.CHOICE, [Option("yes", "Приду", 1), Option("no", "Не приду")], "ru")
    people = (person(1, TELEGRAM_BOT), person(2, TELEGRAM_BOT))
    accepted = await installation.deliver(*people, question=question)
    await installation.finished(accepted)
    answers = Answers(installation.core.store)
    for number in ("1", "2"):
        await answers.enter(accepted.key, TENANT, number, "yes", "anna", f"e{number}")
    link.block_requests(ENQUEUE)
    await answers.enter(accepted.key, TENANT, "1", "no", "anna", "e3")
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    await installation.end_leases()
    await installation.start_api().ready()
    await until(installation.is_empty, within=WITHIN)
    told = [one for one in installation.state.inbox(TELEGRAM_BOT.name) if one.text != "hello"]
    assert [(one.address, one.text) for one in told] == [
        (TELEGRAM_BOT.address(2), "Место освободилось и теперь ваше: Приду.\n«hello»")
    ]
    await installation.audit()


@pytest.mark.parametrize("point", ["before the next is asked", "after the next was asked"])
async def test_a_process_killed_between_a_refusal_and_the_next_person_asks_one_person(
    installation: Installation, point: str
) -> None:
    link, settings = await installation.link_to_server()
    api = installation.start_api(**settings)
    await installation.courier(TELEGRAM_BOT)
    await api.ready()
    options = [Option("yes", "Приду"), Option("no", "Не приду")]
    question = Question(AnswerKind.CHOICE, options, "ru", need=Need(1, 3_600_000))
    accepted = await installation.deliver(*(person(n, TELEGRAM_BOT) for n in (1, 2, 3)), question=question)

    def asked() -> list[str]:
        return [one.address for one in installation.state.inbox(TELEGRAM_BOT.name)]

    await until(lambda: asked() == [TELEGRAM_BOT.address(1)], within=WITHIN)
    (link.block_requests if point == "before the next is asked" else link.block_replies)(b"_ask_wave\r\n")
    await Answers(installation.core.store).enter(accepted.key, TENANT, "1", "no", "anna", "e1")
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    await installation.end_leases()
    await installation.start_api().ready()
    await until(lambda: len(asked()) == 2, within=WITHIN)
    await OpenQuestions(installation.core.store).close(accepted.key, TENANT)
    await installation.finished(accepted)
    assert sorted(asked()) == [TELEGRAM_BOT.address(1), TELEGRAM_BOT.address(2)]
    await installation.audit()


@pytest.mark.parametrize("point", ["between press and answer", "between answer and message"])
async def test_a_killed_process_loses_no_press_and_counts_none_twice(installation: Installation, point: str) -> None:
    link, settings = await installation.link_to_server()
    api = installation.start_api(**settings)
    accepted, people = await ask(installation, TELEGRAM_BOT)
    await api.ready()
    (link.block_requests if point == "between press and answer" else link.block_replies)(ANSWER)
    await people.press(1)
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    await installation.end_leases()
    assert people.labels(1) == ["Прочитано"]
    await installation.start_api().ready()
    await assert_counted_once(installation, TELEGRAM_BOT, accepted, people)


async def post_answer(url: str, path: str) -> str:
    """Press the button of the page; return what it shows then, "" if the process has died."""
    try:
        async with ClientSession() as session, session.post(url + path, data={"option": "read"}) as response:
            return await response.text()
    except ClientError:
        return ""


@pytest.mark.parametrize("point", ["before the answer", "after the answer"])
async def test_an_answer_by_a_link_counts_once_although_its_process_was_killed(
    installation: Installation, point: str
) -> None:
    link, settings = await installation.link_to_server()
    api = installation.start_api(**settings)
    await installation.courier(EMAIL, ADA_PUBLIC_URL="https://ada.example")
    accepted = await installation.deliver(person(1, EMAIL), question=READ)
    await installation.finished(accepted)
    (mail,) = installation.state.inbox("email")
    (path,) = set(re.findall(r"https://ada\.example(/a/\w{45})", mail.text))
    url = (await api.ready())["http"]
    (link.block_requests if point == "before the answer" else link.block_replies)(ANSWER)
    pressed = asyncio.create_task(post_answer(url, path))
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    await installation.end_leases()
    assert await pressed == ""
    again = (await installation.start_api().ready())["http"]
    assert ("Уже записано" if point == "after the answer" else "Спасибо") in await post_answer(again, path)
    history = await installation.core.history(accepted.key)
    assert history.answers
    assert history.answers.states[AnswerState.ANSWERED] == 1
    answer = history.recipients[0].answer
    assert answer
    assert answer.row
    assert (answer.row.by, answer.row.revisions) == ("link", ())
    await installation.audit()


@pytest.mark.parametrize("point", ["before the answer", "after the answer"])
async def test_an_sms_counts_once_although_the_process_that_received_it_was_killed(
    installation: Installation, point: str
) -> None:
    link, settings = await installation.link_to_server()
    inbound = {"ADA_INBOUND_SMS_SECRET": "geheim", "ADA_BOT_TENANT": TENANT}
    api = installation.start_api(**settings, **inbound)
    await installation.courier(SMS, **inbound)
    accepted = await installation.deliver(person(1, SMS), question=READ)
    await installation.finished(accepted)
    number = SMS.address(1)
    (received,) = installation.state.inbox("sms")
    assert received.text.endswith("\nОтветьте 1 – Прочитано")
    url = f"{(await api.ready())['http']}/v1/inbound/sms?secret=geheim&from=%p&to=%P&text=%b&time=%t&id=%I"
    (link.block_requests if point == "before the answer" else link.block_replies)(ANSWER)
    assert await installation.sandbox.sms.write(number, "1, позже", url) == 200
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    await installation.end_leases()
    await installation.start_api(**inbound).ready()

    async def is_answered() -> bool:
        return bool((await installation.core.history(accepted.key)).recipients[0].answer.row)  # type: ignore[union-attr]

    await until(is_answered, within=WITHIN)
    await until(installation.is_empty, within=WITHIN)
    answer = (await installation.core.history(accepted.key)).recipients[0].answer
    assert answer
    assert answer.row
    assert (answer.row.by, answer.row.text, answer.row.revisions) == ("number", "позже", ())
    await installation.audit()


@pytest.mark.parametrize("seed", [1, 2], indirect=["seed"])
async def test_places_and_the_closing_of_a_question_outlive_lost_primaries(
    available_installation: Installation, replica_set: ReplicaSet, seed: int
) -> None:
    """Each loss takes the last writes along: while people answer, while one withdraws, while the question is closed."""
    installation, blows = available_installation, ReplicaSetBlows(replica_set, seed, print, lambda promotion: None)
    store, answers = installation.core.store, Answers(installation.core.store)
    questions = OpenQuestions(installation.core.store)
    await installation.start_api().ready()
    await installation.core.courier(FakeCourier(TELEGRAM_BOT.name, sent))
    contacts = {TELEGRAM_BOT.name: [TELEGRAM_BOT.address(9)]}
    await Directory(store).users.create(TENANT, User(9, "Anna", contacts=contacts))
    question = Question(AnswerKind.CHOICE, [Option("yes", "Приду", 3), Option("no", "Не приду")], "ru")
    people = [person(number, TELEGRAM_BOT) for number in range(1, 9)]
    about: dict[str, Any] = {"channels": (TELEGRAM_BOT.name,), "question": question, "sender": Sender(9)}
    accepted = await installation.core.deliver(*people, **about)
    await installation.core.finished(accepted.key, within=WITHIN)

    async def choose(number: int, value: str) -> GivenAnswer:
        given: GivenAnswer = await repeated(
            lambda: answers.enter(accepted.key, TENANT, str(number), value, "anna", f"{number}{value}")
        )
        return given

    async def told(text: str) -> int:
        found, _ = await installation.core.deliveries.list(TENANT, text=text)
        return len(found)

    blow = asyncio.create_task(blows.begin())
    given = await asyncio.gather(*(choose(number, "yes") for number in range(1, 9)))
    await blow
    placed = [number for number, one in enumerate(given, 1) if not one.row.waiting]
    assert len(placed) == 3
    await asyncio.gather(blows.begin(), choose(placed[0], "no"))
    await until(lambda: told("Место освободилось"), within=WITHIN)
    await asyncio.gather(blows.begin(), repeated(lambda: questions.close(accepted.key, TENANT)))
    await until(lambda: told("Приём ответов закончен"), within=WITHIN)
    await until(installation.is_empty, within=WITHIN)
    counts = (await installation.core.history(accepted.key)).answers
    assert counts
    assert counts.closed_at
    assert (counts.options, counts.waiting) == ({"yes": 3, "no": 1}, {"yes": 4})
    counted = [await told(text) for text in ("Место освободилось", "Приём ответов закончен")]
    assert counted == [1, 5], "the result, and one notice for each that waited"
    late = await choose(placed[1], "no")
    assert late.result == "closed"
    await installation.audit()
