"""A teacher writes by SMS, and a group gets it; each refusal has its own answer; the answers go back by SMS."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest

from core.admission import quotas
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.received import Choices, ReceivedMessages
from core.directory import Directory
from core.directory.linking import Linking
from core.errors import Invalid
from core.model.content import Content, Feature
from core.model.delivery import Accepted, Quota, Repeat
from core.model.people import Group, Supergroup, User
from core.model.states import Reason
from core.orders import Caller, Order, Sending, SendingPolicy
from core.queue import QueueClient
from core.services import Services
from core.threads import Inbox, ReplyWorker
from core.updates.events import Events
from couriers.email import LinkCodeMailer
from couriers.sending.interface import Rejected, Sent
from scenarios.execution.opening import ScenarioOptions
from scenarios.words import in_language, sentence
from tests.scenarios.teacher.chat import texts_in
from tests.support.moments import AHEAD
from tests.support.outbox import Outbox
from tests.support.receiving import answering
from tests.support.stack import TENANT, FakeCourier, Stack
from tests.support.waiting import stays, until

MOSCOW = ZoneInfo("Europe/Moscow")
RULES = SendingPolicy({"trainer": Quota(2, timedelta(days=1))})
TEACHER, STUDENT, STRANGER = "+79990000001", "+79990000002", "+79990000009"
ANNA = User(1, "Анна", "anna@example.org", "trainer", "en", {"sms": [TEACHER]})
BORIS = User(2, "Борис", "boris@example.org", "student", "en", {"sms": [STUDENT]})


RESULTS = ("Result. ", "So far. ", "Итог. ", "Пока. ")


def said(name: str, language: str, /, **values: str | int) -> str:
    """What the dialog says: a text of its folder."""
    found = texts_in(language)[name]
    for key, value in values.items():
        found = found.replace(f"{{{key}}}", str(value))
    return found


def result(name: str, title: str, people: int, reached: int) -> str:
    return in_language(sentence(name, title=title, people=people, reached=reached), "en")


class NumberedCourier(FakeCourier):
    """A courier that shows buttons as lines with numbers."""

    def as_text(self, content: Content) -> frozenset[Feature]:
        return frozenset({Feature.INLINE})


@dataclass
class Network:
    """Telephones that write to the bot, and the SMS that they get."""

    events: Events
    courier: FakeCourier
    directory: Directory
    outbox: Outbox
    core: Services
    stack: Stack
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    def address(self, number: str) -> str:
        """The address in this channel of who has this number: VK's ids are digits."""
        return number.removeprefix("+") if self.courier.channel == "vk" else number

    @property
    def teacher(self) -> str:
        return self.address(TEACHER)

    async def write(self, written: str, number: str = TEACHER, name: str = "") -> bool:
        about = {"id": name or str(next(self.numbers)), "channel": self.courier.channel}
        return await self.events.put("gateway", {**about, "user_id": self.address(number), "event_text": written})

    def received(self, number: str) -> list[str]:
        """The texts that this number got, without the results of deliveries."""
        return [one for one in self.texts(number) if not one.startswith(RESULTS)]

    def results(self, number: str = TEACHER) -> list[str]:
        return [one for one in self.texts(number) if one.startswith(RESULTS)]

    async def result_of(self, written: str) -> str:
        """Write; return the result of the delivery, for which the dialog waits some seconds."""
        await self.answer(written)
        self.stack.advance_clock(timedelta(seconds=3))
        await self.stack.tick()
        await until(self.results)
        (found,) = self.results()
        return found

    def texts(self, number: str) -> list[str]:
        return [message.text for message in self.courier.attempted if message.address == self.address(number)]

    async def answer(self, written: str, number: str = TEACHER) -> str:
        """Write, and return the next SMS that this number gets."""
        before = len(self.received(number))
        await self.write(written, number)
        await until(lambda: len(self.received(number)) > before)
        return self.received(number)[before]


in_both = pytest.mark.parametrize("network", ["sms", "vk"], indirect=True)
"""By SMS and in VK; the dialog is the same, so the other tests are of SMS."""


@pytest.fixture
async def network(stack: Stack, request: pytest.FixtureRequest) -> AsyncIterator[Network]:
    channel, _, language = getattr(request, "param", "sms").partition(" ")
    directory, client, outbox = Directory(stack.store), QueueClient(stack.store), Outbox()
    for user in (ANNA, BORIS):
        addresses = [one.removeprefix("+") if channel == "vk" else one for one in user.contacts["sms"]]
        locale = language or user.locale
        await directory.users.create(
            TENANT, msgspec.structs.replace(user, contacts={channel: addresses}, locale=locale)
        )
    await directory.users.create(TENANT, User("bot", role="trainer"))  # its quota is not that of the answers
    for group in ("ИВТ-101", "ИВТ-102", "ФИЗ-1"):
        await directory.groups.create(TENANT, Group(group, f"Group {group}"), [2] if group != "ИВТ-102" else [])
    await directory.supergroups.create(TENANT, Supergroup("course", "First course", ["ИВТ-101", "ИВТ-102"]))
    for group in ("ИВТ-101", "ИВТ-102"):
        await directory.ownerships.own(TENANT, 1, "group", group)
    await directory.ownerships.own(TENANT, 1, "supergroup", "course")
    courier = NumberedCourier(channel)
    await stack.courier(courier)
    channels = Channels(stack.store, ())
    deliveries = Deliveries(stack.store, channels)
    sending = Sending(stack.store, deliveries, directory, RULES)
    core = replace(
        Services.on(stack.store),
        client=client,
        directory=directory,
        sending=sending,
        deliveries=deliveries,
        channels=channels,
        tracker=stack.tracker,
    )
    options = ScenarioOptions(TENANT, MOSCOW, linking=Linking(stack.store, directory, LinkCodeMailer(outbox)))
    events = Events(client, TENANT, Choices(stack.store))
    await events.open()
    async with answering(core, options):
        yield Network(events, courier, directory, outbox, core, stack)


TRANSCRIPTS = Path(__file__).parent / "transcripts"
PEOPLE = {"teacher": TEACHER, "student": STUDENT, "stranger": STRANGER}


@pytest.mark.parametrize("network", ["sms en", "sms ru", "vk en", "vk ru"], indirect=True)
async def test_the_written_dialog_says_what_the_transcript_has(
    network: Network, request: pytest.FixtureRequest
) -> None:
    """`teacher » ` is what the teacher writes, `student « ` what the student gets."""
    language = request.node.callspec.params["network"].partition(" ")[2]
    expected = (TRANSCRIPTS / f"written_{language}.txt").read_text(encoding="utf-8")
    played = [await played_act(network, act) for act in re.split(r"\n(?=\w+ » )", expected.strip())]
    assert "\n".join(played) + "\n" == expected


async def played_act(network: Network, act: str) -> str:
    """Play an act of a transcript; return it with what each person really got."""
    first, *_ = act.splitlines()
    name, _, written = first.partition(" » ")
    wanted = Counter(re.findall(r"^(\w+) « ", act, flags=re.MULTILINE))
    before = {who: len(network.received(number)) for who, number in PEOPLE.items()}
    code = network.outbox.codes[-1] if network.outbox.codes else ""
    await network.write(written.replace("CODE", code), PEOPLE[name])
    await until(lambda: all(len(network.received(PEOPLE[who])) >= before[who] + many for who, many in wanted.items()))
    got = [f"{who} « {text}" for who, number in PEOPLE.items() for text in network.received(number)[before[who] :]]
    return "\n".join([first, *got])


async def test_a_supergroup_is_an_addressee_too_and_each_person_gets_it_once(network: Network) -> None:
    accepted = await network.answer("First course\nПары не будет")
    assert accepted == said("written_sent", "en", titles="First course", people=1)
    await until(lambda: network.received(STUDENT) == ["Пары не будет"])


@in_both
async def test_what_a_student_writes_back_belongs_to_the_teacher_who_wrote(network: Network) -> None:
    await network.answer("ИВТ-101 Пары не будет")
    await until(lambda: network.received(STUDENT))
    core, number = network.core, network.address(STUDENT)
    received = ReceivedMessages(core.store)
    await until(lambda: received.last(TENANT, network.courier.channel, number, 0))
    replies = ReplyWorker(core.store, core.client, core.directory, core.threads, core.relay)
    await replies.open()
    worker = replies.worker()
    working = asyncio.create_task(worker.run())
    await network.write("А завтра?", STUDENT)
    await until(lambda: len(network.received(STUDENT)) == 2)
    assert network.received(STUDENT)[1] == "Noted: Анна can read it in the console.", "no bot, no mailbox"
    (thread,), _ = await core.threads.page(TENANT, Inbox("user", "1"), None, 10)
    assert thread.newest
    assert thread.newest.text == "А завтра?"
    worker.stop()
    await working


@in_both
async def test_an_sms_that_arrives_twice_is_sent_and_answered_once(network: Network) -> None:
    assert await network.write("ИВТ-101 Пары не будет", name="same")
    assert not await network.write("ИВТ-101 Пары не будет", name="same")
    await network.write("/help")
    await until(lambda: said("written_help_teacher", "en") in network.received(TEACHER))
    assert network.received(STUDENT) == ["Пары не будет"]
    assert len(network.received(TEACHER)) == 2


async def test_the_number_of_a_button_that_is_gone_is_answered(network: Network) -> None:
    """An SMS shows no note over the chat, so the answer is a message."""
    press = {"id": "press", "channel": network.courier.channel, "user_id": network.teacher, "callback_data": "yes"}
    await network.events.put("gateway", {**press, "callback_id": "1"})
    await until(lambda: network.received(TEACHER) == [said("button_stale", "en")])


async def test_several_groups_with_which_a_message_begins_get_it(network: Network) -> None:
    accepted = await network.answer("ИВТ-101, ивт102 Пары не будет")
    assert accepted == said("written_sent", "en", titles="Group ИВТ-101, Group ИВТ-102", people=1)
    await until(lambda: network.received(STUDENT) == ["Пары не будет"])


async def test_above_the_quota_the_remaining_time_is_answered_and_answers_do_not_count(network: Network) -> None:
    for _ in range(2):
        assert (await network.answer("ИВТ-101 text")).startswith("Accepted")
    refused = await network.answer("ИВТ-101 text")
    assert refused == said("order_quota_exceeded", "en", wait_en="1 d")
    assert network.received(STUDENT) == ["text", "text"]


NAMES = "Group ИВТ-101, Group ИВТ-102, First course"


REFUSALS = {
    "Пары не будет": said("written_unclear", "en", names=NAMES),
    "ФИЗ-1 text": said("written_not_owner", "en", titles="Group ФИЗ-1", names=NAMES),
    "ИВТ: text": said("written_several", "en", names="Group ИВТ-101, Group ИВТ-102"),
    "ИВТ-101": said("written_no_text", "en", titles="Group ИВТ-101"),
    "ИВТ-102 text": said("written_nobody", "en", titles="Group ИВТ-102"),
    f"ИВТ-101 {'a' * 4097}": "The text is too long: 4097 characters, 4096 are possible. Nothing was sent.",
    "help": said("written_help_teacher", "en"),
    "/help": said("written_help_teacher", "en"),
}


async def test_each_refusal_has_its_own_answer_and_sends_nothing(network: Network) -> None:
    assert {written: await network.answer(written) for written in REFUSALS} == REFUSALS
    assert network.received(STUDENT) == []


async def test_a_refusal_without_a_sentence_of_its_own_is_answered_too(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_others(order: Order, caller: Caller, repeat: Repeat) -> Awaitable[Accepted]:
        if caller.person:
            raise Invalid("CONTENT_TOO_LARGE", "The content is too large.")
        return send(order, caller, repeat)

    send = network.core.sending.send
    monkeypatch.setattr(network.core.sending, "send", of_others)
    assert await network.answer("ИВТ-101 text") == said("order_refused", "en", error="The content is too large.")


async def test_a_text_of_4096_characters_is_sent(network: Network) -> None:
    assert await network.answer(f"ИВТ-101 {'a' * 4096}") == ACCEPTED
    await until(lambda: network.received(STUDENT) == ["a" * 4096])


async def test_a_group_that_is_lost_meanwhile_is_not_written_to(network: Network) -> None:
    await network.directory.ownerships.disown(TENANT, 1, "group", "ИВТ-101")
    answer = await network.answer("ИВТ-101 text")
    assert answer == said("written_not_owner", "en", titles="Group ИВТ-101", names="Group ИВТ-102")


async def test_a_teacher_without_groups_is_told_so(network: Network) -> None:
    for group in ("ИВТ-101", "ИВТ-102"):
        await network.directory.ownerships.disown(TENANT, 1, "group", group)
    await network.directory.ownerships.disown(TENANT, 1, "supergroup", "course")
    for written in ("ФИЗ-1 text", "No such group"):
        assert await network.answer(written) == said("written_no_groups", "en")


async def test_a_student_sees_the_help_of_students_and_writes_to_no_group(network: Network) -> None:
    assert await network.answer("/help", STUDENT) == said("written_help_student", "en")
    assert await network.answer("ИВТ-101 text", STUDENT) == said("written_not_teacher", "en")
    assert await network.answer("/help", STRANGER) == said("written_help_guest", "ru")


@in_both
async def test_an_unknown_number_is_linked_by_a_mailed_code(network: Network) -> None:
    assert await network.answer("Здравствуйте", STRANGER) == said("link_start", "ru")
    assert "example.org" in await network.answer("anna@example.org", STRANGER)
    linked = await network.answer(network.outbox.codes[0], STRANGER)
    assert linked == f"{said('link_done', 'en', name='Анна')}\n{said('written_help_teacher', 'en')}"
    assert (await network.answer("ИВТ-101 text", STRANGER)).startswith("Accepted")
    assert await network.answer("/unlink", STRANGER) == said("link_unlinked", "en")
    user = await network.directory.users.find(TENANT, 1)
    assert user.contacts == {network.courier.channel: [network.teacher]}


@in_both
async def test_an_answering_machine_is_not_answered_without_end(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert quotas.MOST_REPLIES == 40
    monkeypatch.setattr(quotas, "MOST_REPLIES", 3)
    for _ in range(6):
        await network.write("I am on holiday", STRANGER)
    await network.answer("/help")
    await until(lambda: len(network.received(STRANGER)) == 3)
    await stays(lambda: len(network.received(STRANGER)) == 3)


# the result of a delivery

ACCEPTED = said("written_sent", "en", titles="Group ИВТ-101", people=1)
REACHED = result("result_everybody_reached", "Group ИВТ-101", 1, 1)


@in_both
async def test_the_teacher_gets_the_result_in_the_same_channel_after_the_answer(network: Network) -> None:
    assert await network.result_of("ИВТ-101 Пары не будет") == REACHED
    assert network.texts(TEACHER) == [ACCEPTED, REACHED]


@pytest.mark.parametrize(
    ("members", "refused", "name", "people", "reached"),
    [
        ([2, 3], STUDENT, "result_some_reached", 2, 1),
        ([2], STUDENT, "result_nothing_worked", 1, 0),
        ([4], "", "result_nobody_to_reach", 1, 0),
    ],
)
async def test_each_other_end_has_its_own_result(
    network: Network, members: list[int], refused: str, name: str, people: int, reached: int
) -> None:
    channel = network.courier.channel
    network.courier.respond = lambda one: (
        Rejected(Reason.BLOCKED) if one.address == network.address(refused) else Sent("1")
    )
    await network.directory.users.create(TENANT, User(3, contacts={channel: [network.address("+79990000003")]}))
    await network.directory.users.create(TENANT, User(4))
    await network.directory.groups.create(TENANT, Group("g", "Group 7"), members)
    await network.directory.ownerships.own(TENANT, 1, "group", "g")
    assert await network.result_of("Group 7 text") == result(name, "Group 7", people, reached)


async def test_of_many_groups_the_first_ten_are_named(network: Network) -> None:
    for number in range(20, 32):
        await network.directory.groups.create(TENANT, Group(number, f"A{number}"))
        await network.directory.ownerships.own(TENANT, 1, "group", number)
    answer = await network.answer("no such group")
    names = ", ".join(f"A{number}" for number in range(20, 30))
    assert answer == said("written_unclear", "en", names=f"{names}, …")


async def test_a_teacher_asks_by_numbers_and_reads_who_cannot_answer(network: Network) -> None:
    """The courier of this test has no numbers for answers, and no page."""
    cannot = said("confirm_cannot", "en", cannot_answer=1)
    for written, shown in (
        ("/select", "Selected: –"),
        ("3", "Selected: Group ИВТ-101"),
        ("5", "Write the text."),
        ("Придёте?", "When shall it be sent?"),
        ("1", "Time: now\n\nПридёте?"),
        ("2", "6. A file\n7. None\n8. Cancel"),
        ("2", "1. Cancel"),
        ("Приду\nНе приду", f"Answer: Choose an option\nПриду\nНе приду\n{cannot}\nПридёте?"),
        ("2", "Until when may people answer?"),
        (AHEAD, f"Answers until: {AHEAD}\n{cannot}\nПридёте?"),
    ):
        assert shown in await network.answer(written)
    await network.write("1")
    await until(lambda: "Придёте?" in network.received(STUDENT))
