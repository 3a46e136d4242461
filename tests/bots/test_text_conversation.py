"""A teacher writes by SMS, and a group gets it; each refusal has its own answer; the answers go back by SMS."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from itertools import count
from zoneinfo import ZoneInfo

import msgspec
import pytest

from bots.catalogue import text
from bots.conversation.result import result
from bots.conversation.state import State
from bots.conversation.text_conversation import TextConversation
from bots.delivered_replies import DeliveredReplies
from bots.dialog_event import DialogEvent
from bots.replies import Reply
from bots.services import BotServices
from bots.text_bot import TextBot
from core.admission.quiet_hours import QuietHours, TenantQuietHours
from core.admission.reply_limit import MOST_REPLIES
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.received import ReceivedMessages
from core.directory import Directory
from core.directory.linking import Linking
from core.model.delivery import Quota
from core.model.people import Group, Supergroup, User
from core.model.states import Reason
from core.orders import Sending, SendingPolicy
from core.orders.following import StatusTask, StatusTasks
from core.queue import QueueClient
from core.services import Services
from core.threads import Inbox, ReplyWorker
from core.updates.events import Events, dialogs_tube
from couriers.email import LinkCodeMailer
from couriers.sending.interface import Message, Outcome, Rejected, Sent
from tests.support.outbox import Outbox
from tests.support.stack import TENANT, FakeCourier, Stack, people
from tests.support.waiting import stays, until

MOSCOW = ZoneInfo("Europe/Moscow")
RULES = SendingPolicy({"trainer": Quota(2, timedelta(days=1))}, TenantQuietHours(QuietHours(time(0), time(7), MOSCOW)))
TEACHER, STUDENT, STRANGER = "+79990000001", "+79990000002", "+79990000009"
ANNA = User(1, "Анна", "anna@example.org", "trainer", "en", {"sms": [TEACHER]})
BORIS = User(2, "Борис", "boris@example.org", "student", "en", {"sms": [STUDENT]})


RESULTS = ("Result. ", "So far. ")


@dataclass
class Clock:
    now: datetime = field(default_factory=lambda: (datetime.now(UTC) + timedelta(days=1)).replace(hour=9))


@dataclass
class Network:
    """Telephones that write to the bot, and the SMS that they get."""

    events: Events
    courier: FakeCourier
    directory: Directory
    outbox: Outbox
    clock: Clock
    services: BotServices
    numbers: "count[int]" = field(default_factory=lambda: count(1))
    bots: dict[TextBot, asyncio.Task[None]] = field(default_factory=dict)

    def start_bot(self) -> TextBot:
        bot = TextBot(self.services, self.courier.channel)
        self.bots[bot] = asyncio.create_task(bot.run())
        return bot

    async def stop_bots(self) -> None:
        for bot, running in self.bots.items():
            bot.stop()
            await asyncio.wait_for(running, 10)

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

    def texts(self, number: str) -> list[str]:
        return [message.text for message in self.courier.attempted if message.address == self.address(number)]

    async def answer(self, written: str, number: str = TEACHER) -> str:
        """Write, and return the next SMS that this number gets."""
        before = len(self.received(number))
        await self.write(written, number)
        await until(lambda: len(self.received(number)) > before)
        return self.received(number)[before]


@pytest.fixture(params=["sms", "vk"])
async def network(stack: Stack, request: pytest.FixtureRequest) -> AsyncIterator[Network]:
    channel, clock = request.param, Clock()
    directory, client, outbox = Directory(stack.store), QueueClient(stack.store), Outbox()
    for user in (ANNA, BORIS):
        addresses = [one.removeprefix("+") if channel == "vk" else one for one in user.contacts["sms"]]
        await directory.users.create(TENANT, msgspec.structs.replace(user, contacts={channel: addresses}))
    await directory.users.create(TENANT, User("bot", role="trainer"))  # its quota is not that of the answers
    for group in ("ИВТ-101", "ИВТ-102", "ФИЗ-1"):
        await directory.groups.create(TENANT, Group(group, f"Group {group}"), [2] if group != "ИВТ-102" else [])
    await directory.supergroups.create(TENANT, Supergroup("course", "First course", ["ИВТ-101", "ИВТ-102"]))
    for group in ("ИВТ-101", "ИВТ-102"):
        await directory.ownerships.own(TENANT, 1, "group", group)
    await directory.ownerships.own(TENANT, 1, "supergroup", "course")
    courier = FakeCourier(channel)
    await stack.courier(courier)
    channels = Channels(stack.store, ())
    deliveries = Deliveries(stack.store, channels)
    sending = Sending(stack.store, deliveries, directory, RULES, clock=lambda: clock.now)
    core = replace(
        Services.on(stack.store),
        client=client,
        directory=directory,
        sending=sending,
        deliveries=deliveries,
        channels=channels,
        tracker=stack.tracker,
    )
    linking = Linking(stack.store, directory, LinkCodeMailer(outbox))
    services = BotServices(core, linking, TENANT, MOSCOW)
    events = Events(client, TENANT, tube=dialogs_tube(channel))
    await events.open()
    opened = Network(events, courier, directory, outbox, clock, services)
    opened.start_bot()
    yield opened
    await opened.stop_bots()


async def test_a_teacher_writes_to_a_group_by_sms(network: Network) -> None:
    accepted = await network.answer("ивт-101 Пары не будет")
    assert accepted == text("written_sent", "en", name="Group ИВТ-101", people=1)
    await until(lambda: network.received(STUDENT) == ["Пары не будет"])


async def test_a_supergroup_is_an_addressee_too_and_each_person_gets_it_once(network: Network) -> None:
    accepted = await network.answer("First course\nПары не будет")
    assert accepted == text("written_sent", "en", name="First course", people=1)
    await until(lambda: network.received(STUDENT) == ["Пары не будет"])


async def test_what_a_student_writes_back_belongs_to_the_teacher_who_wrote(network: Network) -> None:
    await network.answer("ИВТ-101 Пары не будет")
    await until(lambda: network.received(STUDENT))
    core, number = network.services.core, network.address(STUDENT)
    received = ReceivedMessages(core.store)
    await until(lambda: received.last(TENANT, network.courier.channel, number, 0))
    replies = ReplyWorker(core.store, core.client, core.directory, core.threads, core.relay)
    await replies.open()
    worker = replies.worker()
    working = asyncio.create_task(worker.run())
    await network.write("А завтра?", STUDENT)
    await until(lambda: len(network.received(STUDENT)) == 2)
    assert network.received(STUDENT)[1] == "Passed on to Анна."
    (thread,), _ = await core.threads.page(TENANT, Inbox("user", "1"), None, 10)
    assert thread.newest
    assert thread.newest.text == "А завтра?"
    worker.stop()
    await working


async def test_an_sms_that_arrives_twice_is_sent_and_answered_once(network: Network) -> None:
    assert await network.write("ИВТ-101 Пары не будет", name="same")
    assert not await network.write("ИВТ-101 Пары не будет", name="same")
    await network.write("/help")
    await until(lambda: text("written_help_teacher", "en") in network.received(TEACHER))
    assert network.received(STUDENT) == ["Пары не будет"]
    assert len(network.received(TEACHER)) == 2


async def test_a_press_of_a_button_that_no_dialog_has_shown_is_not_answered(network: Network) -> None:
    press = {"id": "press", "channel": network.courier.channel, "user_id": network.teacher, "callback_data": "yes"}
    await network.events.put("gateway", press)
    await network.write("/help")
    await until(lambda: network.received(TEACHER))
    assert network.received(TEACHER) == [text("written_help_teacher", "en")]


async def test_an_event_that_is_processed_again_after_a_crash_sends_nothing_twice(network: Network) -> None:
    status_tasks = StatusTasks(network.services.core.client, TENANT, network.courier.channel)
    conversation = TextConversation(network.services, status_tasks)
    replies = DeliveredReplies(network.services.core.store, network.services.core.sending, TENANT)
    event = DialogEvent("again", network.courier.channel, network.teacher, text="ИВТ-101 Пары не будет")
    for _ in range(2):
        (reply,) = (await conversation.converse(event, State())).replies
        assert reply.text == text("written_sent", "en", name="Group ИВТ-101", people=1)
        await replies.send(event, reply)
    await network.write("/help")
    await until(lambda: text("written_help_teacher", "en") in network.received(TEACHER))
    assert network.received(STUDENT) == ["Пары не будет"]
    assert len(network.received(TEACHER)) == 2


async def test_above_the_quota_the_remaining_time_is_answered_and_answers_do_not_count(network: Network) -> None:
    for _ in range(2):
        assert (await network.answer("ИВТ-101 text")).startswith("Accepted")
    refused = await network.answer("ИВТ-101 text")
    assert refused == text("written_quota_exceeded", "en", time="1 d")
    assert network.received(STUDENT) == ["text", "text"]


async def test_at_night_the_morning_time_is_answered_at_once(network: Network) -> None:
    network.clock.now = datetime(2030, 1, 1, 22, 30, tzinfo=UTC)  # 01:30 in Moscow
    answer = await network.answer("ИВТ-101 text")
    assert answer.startswith(
        "Accepted. Group ИВТ-101, recipients: 1. These are quiet hours; it is sent on 02.01.2030 07:0"
    )
    assert network.received(STUDENT) == []


NAMES = "Group ИВТ-101, Group ИВТ-102, First course"


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("Пары не будет", text("written_unclear", "en", names=NAMES)),
        ("ФИЗ-1 text", text("written_not_owner", "en", name="Group ФИЗ-1", names=NAMES)),
        ("ИВТ: text", text("written_several", "en", names="Group ИВТ-101, Group ИВТ-102")),
        ("ИВТ-101", text("written_no_text", "en", name="Group ИВТ-101")),
        ("ИВТ-102 text", text("written_nobody", "en", name="Group ИВТ-102")),
        (f"ИВТ-101 {'a' * 4097}", text("written_too_long", "en", length=4097, most=4096)),
        ("help", text("written_help_teacher", "en")),
        ("/help", text("written_help_teacher", "en")),
    ],
)
async def test_each_refusal_has_its_own_answer_and_sends_nothing(network: Network, written: str, answer: str) -> None:
    assert await network.answer(written) == answer
    assert network.received(STUDENT) == []


async def test_a_text_of_4096_characters_is_sent(network: Network) -> None:
    assert await network.answer(f"ИВТ-101 {'a' * 4096}") == ACCEPTED
    await until(lambda: network.received(STUDENT) == ["a" * 4096])


async def test_a_group_that_is_lost_meanwhile_is_not_written_to(network: Network) -> None:
    await network.directory.ownerships.disown(TENANT, 1, "group", "ИВТ-101")
    answer = await network.answer("ИВТ-101 text")
    assert answer == text("written_not_owner", "en", name="Group ИВТ-101", names="Group ИВТ-102")


async def test_a_student_sees_the_help_of_students_and_writes_to_no_group(network: Network) -> None:
    assert await network.answer("/help", STUDENT) == text("written_help_student", "en")
    assert await network.answer("ИВТ-101 text", STUDENT) == text("written_not_teacher", "en")
    assert await network.answer("/help", STRANGER) == text("written_help_guest", "ru")


async def test_an_unknown_number_is_linked_by_a_mailed_code(network: Network) -> None:
    assert await network.answer("Здравствуйте", STRANGER) == text("link_start", "ru")
    assert "example.org" in await network.answer("anna@example.org", STRANGER)
    linked = await network.answer(network.outbox.codes[0], STRANGER)
    assert linked == text("link_done", "en", name="Анна", help=text("written_help_teacher", "en"))
    assert (await network.answer("ИВТ-101 text", STRANGER)).startswith("Accepted")
    assert await network.answer("/unlink", STRANGER) == text("link_unlinked", "en")
    user = await network.directory.users.find(TENANT, 1)
    assert user.contacts == {network.courier.channel: [network.teacher]}


@pytest.mark.parametrize(
    ("written", "answer"),
    [("nobody@example.org", "link_email_unknown"), ("ABC234", "link_code_missing"), ("a@", "link_email_malformed")],
)
async def test_each_refusal_of_linking_has_its_own_answer(network: Network, written: str, answer: str) -> None:
    assert await network.answer(written, STRANGER) == text(answer, "ru")


async def test_an_answering_machine_is_not_answered_without_end(network: Network) -> None:
    for _ in range(MOST_REPLIES + 3):
        await network.write("I am on holiday", STRANGER)
    await network.answer("/help")
    await until(lambda: len(network.received(STRANGER)) == MOST_REPLIES)
    await stays(lambda: len(network.received(STRANGER)) == MOST_REPLIES)


# the result of a delivery

ACCEPTED = text("written_sent", "en", name="Group ИВТ-101", people=1)
REACHED = text("result_everybody_reached", "en", name="Group ИВТ-101", people=1, reached=1)


async def test_after_an_hour_there_is_a_result_although_the_delivery_has_not_ended(stack: Stack) -> None:
    accepted = await stack.deliver(*people(1))
    history = await stack.history(accepted.key)
    assert history.released_at is not None
    hour = history.released_at + timedelta(hours=1)
    followed = StatusTask(accepted.key.id, "sms", TEACHER, "", "en", title="Group 7")
    assert (history.finished_at, result(history, followed, hour).text) == (None, "")
    assert result(history, followed, hour + timedelta(seconds=1)).text.startswith(RESULTS)


async def test_the_teacher_gets_the_result_in_the_same_channel_after_the_answer(network: Network) -> None:
    await network.write("ИВТ-101 Пары не будет")
    await until(network.results)
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
    await network.write("Group 7 text")
    await until(network.results)
    assert network.results() == [text(name, "en", name="Group 7", people=people, reached=reached)]


async def test_another_process_sends_the_result_if_the_first_one_is_killed_meanwhile(network: Network) -> None:
    """The student's message is answered only after the process that accepted it was killed."""
    arrived = asyncio.Event()

    async def respond(message: Message) -> Outcome:
        if message.address == network.address(STUDENT):
            await arrived.wait()
        return Sent("1")

    network.courier.respond = respond
    assert await network.answer("ИВТ-101 text") == ACCEPTED
    ((_, running),) = network.bots.items()
    running.cancel()
    await asyncio.wait({running})
    network.bots.clear()
    network.start_bot()
    arrived.set()
    await until(network.results)
    await network.answer("/help")
    assert network.results() == [REACHED]


async def test_a_result_that_is_sent_again_after_a_crash_arrives_once(network: Network) -> None:
    """Between the two attempts a delivery report has changed the counts."""
    followed = StatusTask("history:{0}:1:1", network.courier.channel, network.teacher, "", "en")
    replies = DeliveredReplies(network.services.core.store, network.services.core.sending, TENANT)
    assert not await replies.send_result(followed, Reply("Result. first"))
    assert not await replies.send_result(followed, Reply("Result. second"))
    await network.answer("/help")
    assert network.results() == ["Result. first"]


async def test_a_result_in_quiet_hours_waits_until_they_are_over(network: Network) -> None:
    night = (datetime.now(MOSCOW) + timedelta(days=1)).replace(hour=1)
    network.clock.now = night.astimezone(UTC)
    followed = StatusTask("history:{0}:1:1", network.courier.channel, network.teacher, "", "en")
    replies = DeliveredReplies(network.services.core.store, network.services.core.sending, TENANT)
    await replies.send_result(followed, Reply("Result. text"))
    (sent,), _ = await network.services.core.deliveries.list(TENANT, sender="bot")
    morning = night.replace(hour=7, minute=0, second=0, microsecond=0)
    assert morning <= sent.deliver_at < morning + timedelta(minutes=6)


async def test_results_count_within_the_daily_limit_of_answers(network: Network) -> None:
    replies = DeliveredReplies(network.services.core.store, network.services.core.sending, TENANT)
    for number in range(MOST_REPLIES + 3):
        followed = StatusTask(f"history:{{0}}:1:{number}", network.courier.channel, network.teacher, "", "en")
        await replies.send_result(followed, Reply("Result. text"))
    await until(lambda: len(network.results()) == MOST_REPLIES)
    await network.write("ИВТ-101 text")
    await until(lambda: network.received(STUDENT) == ["text"])
    assert len(network.texts(TEACHER)) == MOST_REPLIES


async def test_of_many_groups_the_first_ten_are_named(network: Network) -> None:
    for number in range(20, 32):
        await network.directory.groups.create(TENANT, Group(number, f"A{number}"))
        await network.directory.ownerships.own(TENANT, 1, "group", number)
    answer = await network.answer("no such group")
    names = ", ".join(f"A{number}" for number in range(20, 30))
    assert answer == text("written_unclear", "en", names=f"{names}, …")


async def test_two_replies_to_one_update_are_both_sent_and_each_once(network: Network) -> None:
    replies = DeliveredReplies(network.services.core.store, network.services.core.sending, TENANT)
    event = DialogEvent("9", network.courier.channel, network.teacher)
    for reply in (Reply("one"), Reply("two"), Reply("one"), Reply("two")):
        await replies.send(event, reply)
    await until(lambda: len(network.texts(TEACHER)) >= 2)
    await stays(lambda: sorted(network.texts(TEACHER)) == ["one", "two"])


async def test_the_limit_of_answers_of_one_tenant_is_not_that_of_another(network: Network) -> None:
    services, channel = network.services, network.courier.channel
    ours, theirs = (
        DeliveredReplies(services.core.store, services.core.sending, tenant) for tenant in (TENANT, "another")
    )
    for number in range(MOST_REPLIES):
        await theirs.send(DialogEvent(str(number), channel, network.address(STUDENT)), Reply(f"theirs {number}"))
    await ours.send(DialogEvent("9", channel, network.address(STUDENT)), Reply("ours"))
    await until(lambda: "ours" in network.texts(STUDENT))
