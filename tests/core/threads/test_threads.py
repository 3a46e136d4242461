"""Replies: the thread of each, what the other side gets, and what it does not. The provider is simulated; the way in is
the real one.
"""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from itertools import count
from typing import Any

import pytest

from core.admission.actions import ActionFilter, ActionLog
from core.deliveries.histories.encoding import PAGE
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.received import MOST, ReceivedMessage, ReceivedMessages
from core.directory.preferences import OptOuts
from core.errors import Conflict, Invalid, NotFound, QuotaExceeded, StoreUnavailable
from core.model.content import Attachment, Feature
from core.model.delivery import Accepted, NewDelivery, Sender
from core.model.history_key import HistoryKey, Id
from core.model.hours import OfficeHours, Opening, QuietHours, TenantOfficeHours, TenantQuietHours
from core.model.people import Group, User, UserChange
from core.model.question import AnswerKind, AnswerVisibility, Option, Question
from core.model.states import DeliveryState
from core.orders import Caller, Order, SendingPolicy
from core.orders.order import Addressee
from core.queue import NewTask
from core.redis.connection import Word
from core.redis.keys import KEYS
from core.redis.server_checks import configure
from core.services import Services
from core.threads import Inbox, ReplyWorker, Thread, UnquotedReplies
from core.threads import threads as threads_module
from core.threads.files import (
    LONGEST,
    ReceivedFile,
    ThreadFiles,
    fetchable,
    files_worker,
    open_files_tube,
    type_of,
)
from core.threads.incoming import IncomingReplies, Written
from core.threads.limits import ReplyLimits
from core.threads.metadata import without_metadata
from core.threads.threads import ThreadMessage
from core.updates.bot_calls import calls_tube
from core.updates.events import NO_ANSWER_TO, Event, Events, encode
from core.uploads import Uploads
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import EventType
from couriers.sending.interface import Message, Outcome, Sent
from tests.core.threads.test_metadata import photograph
from tests.support.audited import violations_in
from tests.support.stack import QUICK, TENANT, FakeCourier, PaidCourier, Stack
from tests.support.waiting import until

BOT = "telegram-bot"
ANNA = User(7, "Anna Petrova", role="trainer", locale="ru", contacts={BOT: ["100007"]})
OLGA = User(8, "Olga", role="staff", locale="en", contacts={BOT: ["100008"]})
MARIA = User(1, "Maria", role="student", locale="ru", contacts={BOT: ["100001"]})
VERA = User(3, locale="ru", contacts={BOT: ["100003"]})
BORIS = User(2, "Boris", role="student", locale="en", contacts={BOT: ["100002"]})
ANNAS = Inbox("user", "7")
OFFICE = Inbox("office", "dean")


CONTACT = {"type": "contact", "phone": "+79991234567", "is_own": True}


def attached(files: Mapping[str, bytes], kind: str, **more: str) -> list[dict[str, str]]:
    return [{"type": kind, "file_id": one, **more} for one in files]


@asynccontextmanager
async def fetching(school: "School", files: Mapping[str, bytes]) -> AsyncIterator[asyncio.Event]:
    """Fetch files as the process of a bot does, while the event is set; the provider has these."""
    allowed = asyncio.Event()
    allowed.set()

    async def fetch(event: Event, most: int) -> AsyncIterator[ReceivedFile]:
        await allowed.wait()
        for one in fetchable(event)[:most]:
            yield ReceivedFile(type_of(one), str(one.get("file_name") or ""), files[one["file_id"]] or b"%PDF")

    core = school.core
    await open_files_tube(core.client, BOT)
    stored = ThreadFiles(core.store, core.client, Uploads(core.store))
    worker = files_worker(core.client, BOT, {TENANT: fetch}, stored)
    working = asyncio.create_task(worker.run())
    yield allowed
    worker.stop()
    await working


@dataclass
class School:
    """Two of staff and two students with one bot."""

    core: Services
    stack: Stack
    courier: FakeCourier
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def order(
        self, sender: User = ANNA, *, to: User = MARIA, text: str = "No classes", **options: Any
    ) -> Accepted:
        delivery = NewDelivery(TENANT, Sender(sender.id), text, (), [BOT], **options)
        return await self.core.sending.send(Order(delivery, [Addressee(to.id)]), Caller(TENANT, person=sender))

    async def send(self, sender: User = ANNA, *, to: User = MARIA, **options: Any) -> str:
        """Send a message and return its id at the provider."""
        accepted = await self.order(sender, to=to, **options)
        await self.stack.finished(accepted.key)
        return str(len(self.courier.attempted))

    async def write(self, writer: User, text: str, quoted: str = "", event: str = "", **fields: Any) -> None:
        """Write to the bot, and wait until that was processed."""
        address = writer.contacts[BOT][0]
        number = event or f"e{next(self.numbers)}"
        written = {
            "id": number,
            "channel": BOT,
            "kind": "text",
            "user_id": address,
            "chat_id": address,
            "event_text": text,
        }
        await self.put({**written, **({"reply_message_id": quoted, "is_reply": True} if quoted else {}), **fields})
        await until(self.is_idle)

    async def press(self, writer: User, data: str) -> None:
        """Press a button, and wait until that was processed."""
        address, number = writer.contacts[BOT][0], f"e{next(self.numbers)}"
        of_press = {"callback_id": number, "callback_data": data, "message_id": 1}
        event = {"id": number, "channel": BOT, "kind": "callback", "user_id": address, "chat_id": address, **of_press}
        await Events(self.core.client, TENANT).put(TENANT, event)
        await until(self.is_idle)

    async def put(self, event: dict[str, Any]) -> None:
        client = self.core.client
        words = OptOuts(self.core.directory, TENANT)
        events = Events(client, TENANT, received=ReceivedMessages(self.core.store), opt_outs=words)
        is_edit = event["kind"] == "edited"
        if is_edit or event.get("reply_message_id") or await words.is_asked(BOT, event["user_id"], event["event_text"]):
            await events.put(TENANT, event)
        else:  # no bot has answered it
            await events.put_reply({**event, "source": TENANT})

    async def is_idle(self) -> bool:
        tubes = (await self.core.queue.inspector.stats()).tubes
        return not any(tubes[name].live for name in ("replies", BOT) if name in tubes)

    def got(self, user: User) -> list[str]:
        """Return the texts that a person has got."""
        return [one.text for one in self.courier.attempted if one.address == user.contacts[BOT][0]]

    def last_to(self, user: User) -> str:
        """Return the id at the provider of the last message to a person."""
        address = user.contacts[BOT][0]
        return str(max(n for n, one in enumerate(self.courier.attempted, 1) if one.address == address))

    def button(self) -> str:
        """Return the data of the first button of the last message."""
        content = self.courier.attempted[-1].content
        assert content
        return content.inline[0][0].data

    def files_of(self, message: Message) -> Sequence[Attachment]:
        return message.content.attachments if message.content else ()

    async def has(self, tube: str, state: str) -> bool:
        counts = (await self.core.queue.inspector.stats()).tubes
        return tube in counts and bool(getattr(counts[tube].states, state))

    async def content_of(self, upload: str) -> bytes:
        """Return the content of an uploaded file."""
        target = io.BytesIO()
        assert await Uploads(self.core.store).load(TENANT, upload, target)
        return target.getvalue()

    async def threads(self, inbox: Inbox = ANNAS) -> list[Thread]:
        return (await self.core.threads.page(TENANT, inbox, None, 10))[0]

    async def said(self, thread: Thread) -> list[tuple[str, str]]:
        """Return side and text of the messages of a thread, the oldest first."""
        thread = await self.core.threads.find(TENANT, thread.id)
        return [(one.side, one.text) for one in reversed(await self.core.threads.messages(thread, 0, 100))]


@asynccontextmanager
async def school_on(stack: Stack, office: str = "dean", policy: SendingPolicy | None = None) -> AsyncIterator[School]:
    core = Services.on(stack.store, policy)
    numbers = count(1)

    def respond(message: Message) -> Outcome:
        return Sent(str(next(numbers)))

    courier = FakeCourier(
        BOT, respond, shows=frozenset({Feature.ANSWER, Feature.INLINE, Feature.PHOTO, Feature.DOCUMENT})
    )
    for user in (ANNA, OLGA, MARIA, BORIS):
        await core.directory.users.create(TENANT, user)
    await core.directory.groups.create(TENANT, Group("dean", "Dean's office"), [8, 2])
    await core.directory.groups.create(TENANT, Group("8b", "8Б"), [1, 2])
    await core.directory.ownerships.own(TENANT, 7, "group", "8b")
    await core.directory.ownerships.own(TENANT, 8, "group", "8b")
    await stack.courier(courier)
    hooks = Webhooks(stack.store, core.queue, WebhookClient(allow_private=False))
    replies = ReplyWorker(stack.store, core.client, core.directory, core.threads, core.relay, office, hooks)
    await replies.open()
    worker = replies.worker()
    running = asyncio.create_task(worker.run())
    yield School(core, stack, courier)
    worker.stop()
    await running
    await stack.audit()
    await core.live.close()
    await core.tracker.close()
    await core.client.close()


@pytest.fixture
async def school(stack: Stack) -> AsyncIterator[School]:
    async with school_on(stack) as school:
        yield school


async def test_words_that_do_not_answer_a_question_go_to_who_has_asked_it(school: School) -> None:
    asked = await school.order(text="How many of you come?")
    await school.stack.finished(asked.key)
    await school.send(OLGA)
    about: dict[str, Any] = {NO_ANSWER_TO: [asked.key.id, 0]}
    await school.write(MARIA, "1 сентября придём", **about)
    (thread,) = await school.threads()
    assert await school.said(thread) == [("person", "1 сентября придём")]
    assert await school.threads(Inbox("user", "8")) == []


async def test_a_reply_reaches_its_sender_and_the_answer_goes_back(school: School) -> None:
    message = await school.send()
    await school.write(MARIA, "And tomorrow?", quoted=message)
    (thread,) = await school.threads()
    assert (thread.person.name, thread.unread, thread.newest and thread.newest.text) == ("Maria", 1, "And tomorrow?")
    (relayed,) = school.got(ANNA)
    assert relayed == "Maria отвечает на «No classes»:\nAnd tomorrow?\n\nЧтобы ответить, ответьте на это сообщение."
    assert school.got(MARIA) == ["No classes", "Передано: Anna Petrova."]
    await school.write(ANNA, "Tomorrow as usual", quoted=school.last_to(ANNA))
    assert school.got(MARIA)[2:] == ["Anna Petrova отвечает:\nTomorrow as usual"]
    await school.write(MARIA, "Thanks", quoted=school.last_to(MARIA))
    assert school.got(ANNA)[1:] == ["Maria пишет:\nThanks"]
    assert await school.said(thread) == [
        ("person", "And tomorrow?"),
        ("staff", "Tomorrow as usual"),
        ("person", "Thanks"),
    ]


async def test_a_reply_without_a_quote_belongs_to_the_last_message_of_a_week_then_to_the_office(school: School) -> None:
    await school.send()
    await school.write(MARIA, "Which room?")
    assert [one.person.name for one in await school.threads()] == ["Maria"]
    await school.write(BORIS, "Hello?")  # has got nothing
    (thread,) = await school.threads(OFFICE)
    assert (thread.person.name, await school.said(thread)) == ("Boris", [("person", "Hello?")])
    assert school.got(BORIS) == ["Passed on to Dean's office."]
    assert school.got(OLGA) == ["Boris writes:\nHello?\n\nReply to this message to answer."]
    school.stack.advance_clock(timedelta(days=8))
    await school.write(MARIA, "And now?")
    assert [one.person.name for one in await school.threads(OFFICE)] == ["Maria", "Boris"]


async def test_without_an_office_the_author_of_what_belongs_to_nothing_gets_a_notice(stack: Stack) -> None:
    async with school_on(stack, office="") as school:
        for text in ("Hello?", "Is nobody there?"):
            await school.write(BORIS, text)
        assert (school.got(BORIS), await school.threads(OFFICE)) == (["Nobody reads what is written here."], [])


async def test_the_delivery_of_a_reply_names_its_person_beyond_the_first_page_of_people(school: School) -> None:
    people = [Addressee(n, contacts={BOT: [str(n)]}) for n in range(1000, 1000 + PAGE + 1)]
    delivery = NewDelivery(TENANT, Sender(7), "?", (), [BOT], deliver_at=datetime.now(UTC) + timedelta(hours=1))
    key = (await school.core.sending.send(Order(delivery, people), Caller(TENANT, is_admin=True))).key
    incoming = IncomingReplies(school.core.store, school.core.directory)
    found = [await incoming.delivery(TENANT, ReceivedMessage("1", key, number)) for number in (0, PAGE, PAGE + 1)]
    assert [one and one.recipient for one in found] == [1000, 1000 + PAGE, None]
    assert await incoming.delivery("another", ReceivedMessage("1", key, 0)) is None, "of another tenant"


async def test_the_members_of_an_office_read_it_together_but_no_student(school: School) -> None:
    message = await school.send(replies="dean")
    await school.write(MARIA, "May I come?", quoted=message)
    assert await school.threads() == []
    (thread,) = await school.threads(OFFICE)
    assert school.got(BORIS) == []  # a member, and a student
    await school.write(OLGA, "Yes", quoted=school.last_to(OLGA))
    assert school.got(MARIA)[-1] == "Olga (Dean's office) отвечает:\nYes"
    assert await school.said(thread) == [("person", "May I come?"), ("staff", "Yes")]
    assert await school.core.relay.readers.inboxes_of(TENANT, OLGA) == [Inbox("user", "8"), OFFICE]
    assert await school.core.relay.readers.inboxes_of(TENANT, BORIS) == [Inbox("user", "2")]
    await school.write(OLGA, "May I, too?", quoted=await school.send(OLGA, to=OLGA, replies="dean"))
    assert not any("May I, too?" in text for text in school.got(OLGA)), "nobody gets its own words"
    await school.core.directory.users.update(TENANT, 8, UserChange(blocked=True))
    assert await school.core.relay.readers.of(TENANT, OFFICE) == []


async def test_who_reads_an_office_no_longer_answers_neither_by_a_quote_nor_by_an_edit_nor_by_a_button(
    school: School,
) -> None:
    await school.write(MARIA, "May I come?", quoted=await school.send(replies="dean"))
    (thread,), asked = await school.threads(OFFICE), school.last_to(OLGA)
    await school.write(OLGA, "Yes", quoted=asked, message_id=71)
    await school.write(OLGA, "Call 8 912 345-67-89", quoted=asked)
    held = school.button()
    await school.core.directory.groups.remove_member(TENANT, "dean", 8)
    said, got, refusal = await school.said(thread), school.got(MARIA), "you do not read this inbox any more."
    await school.write(OLGA, "No", quoted=asked)
    await school.write(OLGA, "No", kind="edited", message_id=71)
    await school.press(OLGA, held)
    assert [text.endswith(refusal) for text in school.got(OLGA)[-4:]] == [False, True, True, True]
    assert (await school.said(thread), school.got(MARIA)) == (said, got)
    assert len(await school.stack.take(calls_tube(BOT), 9)) == 1, "the client of the press no longer waits"


async def test_the_second_answer_of_an_office_waits_until_its_author_wants_it(school: School) -> None:
    await school.core.directory.groups.add_members(TENANT, "dean", [7])
    await school.write(MARIA, "May I come?", quoted=await school.send(replies="dean"))
    asked = school.last_to(ANNA)
    await school.write(OLGA, "Yes", quoted=school.last_to(OLGA))
    await school.write(OLGA, "At ten", quoted=school.last_to(OLGA))  # her own second one
    await school.write(ANNA, "No", quoted=asked)
    assert school.got(MARIA)[-1] == "Olga (Dean's office) отвечает:\nAt ten"
    assert school.got(ANNA)[-1] == "Этому человеку уже отвечено, Olga: «At ten» Отправить и ваш ответ?"
    content = school.courier.attempted[-1].content
    assert content
    await school.press(ANNA, content.inline[0][0].data)
    assert school.got(MARIA)[-1] == "Anna Petrova (Dean's office) отвечает:\nNo"
    await school.write(MARIA, "So what?")
    await school.write(OLGA, "Come", quoted=school.last_to(OLGA))
    assert school.got(MARIA)[-1] == "Olga (Dean's office) отвечает:\nCome"


async def test_open_consoles_see_when_a_reader_begins_to_answer_and_when_that_ends(school: School) -> None:
    await school.write(MARIA, "May I come?", quoted=await school.send(replies="dean"))
    (thread,) = await school.threads(OFFICE)
    claims: list[tuple[Id, timedelta, int]] = [
        (8, timedelta(seconds=20), 1),
        (8, timedelta(seconds=20), 0),  # the same reader goes on
        (7, timedelta(seconds=20), 0),  # a colleague is refused
        (8, timedelta(0), 1),
        (8, timedelta(0), 0),
        (7, timedelta(seconds=20), 1),
    ]
    key = KEYS["thread_events"].at(int(thread.id.partition(".")[0]))
    for reader, kept, announced in claims:
        before = await school.core.store.command("XLEN", key)
        await school.core.threads.claim_answer(thread, reader, kept)
        assert await school.core.store.command("XLEN", key) - before == announced, (reader, kept)


async def test_a_second_answer_with_an_address_in_it_is_asked_about_both(school: School) -> None:
    await school.core.directory.groups.add_members(TENANT, "dean", [7])
    await school.write(MARIA, "May I come?", quoted=await school.send(replies="dean"))
    (thread,) = await school.threads(OFFICE)
    await school.core.threads.claim_answer(thread, 8)
    await school.write(ANNA, "Call +7 912 345-67-89", quoted=school.last_to(ANNA))
    assert school.got(ANNA)[-1] == "Olga сейчас отвечает этому человеку. Отправить и ваш ответ?"
    second = school.button()
    await school.press(ANNA, second)
    assert "В сообщении есть контакты: +7 912 345-67-89" in school.got(ANNA)[-1]
    addresses = school.button()
    await school.press(ANNA, second)  # once more: it is no answer to the other question
    assert "отвечает" not in school.got(MARIA)[-1]
    await school.press(ANNA, addresses)
    assert school.got(MARIA)[-1] == "Anna Petrova (Dean's office) отвечает:\nCall +7 912 345-67-89"


async def test_who_replies_where_replies_are_off_is_told_so_once(school: School) -> None:
    accepted = await school.order(replies="off")
    await school.stack.finished(accepted.key)
    message = school.last_to(MARIA)
    await school.write(MARIA, "Hello", quoted=message)
    await school.write(MARIA, "Hello", quoted=message)
    assert school.got(MARIA)[1:] == ["Ответы на это сообщение никто не читает."]
    history = await school.stack.history(accepted.key)
    assert (accepted.repeated, history.refused_replies) == (False, 1)
    assert await school.threads() == []


@pytest.mark.parametrize(
    ("stated", "text", "off", "opted_out", "head"),
    [
        ("ru", "No classes", "Ответы на это", "Больше не пишем", "Maria отвечает"),
        ("en", "Нет пар", "Nobody reads replies", "You get no more", "Maria replies"),
        (None, "No classes", "Nobody reads replies", "You get no more", "Maria replies"),
        (None, "Нет пар", "Ответы на это", "Больше не пишем", "Maria отвечает"),
    ],
)
async def test_who_has_stated_no_language_is_spoken_to_in_that_of_what_it_has_got(
    school: School, stated: str | None, text: str, off: str, opted_out: str, head: str
) -> None:
    """It was always Russian."""
    for user in (MARIA, ANNA):
        await school.core.directory.users.update(TENANT, user.id, UserChange(locale=stated))
    accepted = await school.order(text=text, replies="off")
    await school.stack.finished(accepted.key)
    await school.write(MARIA, "1", quoted=school.last_to(MARIA))
    assert school.got(MARIA)[-1].startswith(off)
    message = await school.send(text=text, replies="sender")
    await school.write(MARIA, text, quoted=message)
    assert school.got(ANNA)[0].startswith(head)
    await school.write(MARIA, "СТОП")
    assert school.got(MARIA)[-1].startswith(opted_out)


async def test_what_a_reader_writes_without_a_quote_goes_to_nobody(school: School) -> None:
    await school.write(MARIA, "Hello", quoted=await school.send())
    await school.write(ANNA, "Secret")
    assert school.got(ANNA)[-1].startswith("Непонятно, кому это.")
    assert not any("Secret" in text for text in school.got(MARIA))


async def test_a_quoted_message_of_another_account_is_none_of_ones_own(school: School) -> None:
    message = await school.send()
    await school.write(BORIS, "I am Maria", quoted=message)  # put_reply is not called: his bot gets it
    assert await school.threads() == []


async def test_who_replies_with_nothing_of_its_own_is_told_so(school: School) -> None:
    message = await school.send()
    await school.write(MARIA, "", quoted=message, is_forward=True, event="e1")
    assert school.got(MARIA)[1:] == ["Это не передано: здесь нет ни своих слов, ни файлов."]
    for _ in range(3):  # without a quote it is said once in an hour
        await school.write(MARIA, "", is_forward=True)
    assert (len(school.got(MARIA)), await school.threads()) == (3, [])
    await school.write(MARIA, "", quoted=message, is_forward=True, forward_text="Rules", forward_files=2)
    assert school.got(ANNA)[-1].splitlines()[1:3] == ["Rules", "(Файлы не переданы: 2.)"]


@pytest.mark.parametrize(("size", "messages"), [(4, ["111\n\n222\n\n333"]), (60_000, ["1", "2", "3"])])
async def test_several_forwards_are_one_message_unless_they_are_too_large(
    school: School, size: int, messages: list[str]
) -> None:
    """The first one is handed in twice; they come in any order."""
    await school.send()
    core = school.core
    replies, written = UnquotedReplies(core.store, core.client, core.directory, TENANT), {"channel": BOT}
    for number in (1, 3, 2, 1):
        text = str(number) * (3 if size == 4 else size)
        about = {"event_text": text, "event_date": "2026-09-01T08:00:00+00:00", "message_id": number}
        person = {"user_id": "100001", "chat_id": "100001"}
        assert await replies.take({**written, **about, **person, "id": f"f{number}", "is_forward": True})
    await until(school.is_idle)
    (thread,) = await school.threads()
    assert sorted(text[: len(messages[0])] for _, text in await school.said(thread)) == messages


@pytest.mark.parametrize(("kept", "answers_kept"), [(100, None), (30, 100)])
async def test_the_references_of_all_parts_lead_to_their_delivery_as_long_as_its_history_is_kept(
    stack: Stack, kept: int, answers_kept: int | None
) -> None:
    """The bytes are those of the server: 100 in the list of the newest, the others in pages of a month."""
    store, received = stack.store, ReceivedMessages(stack.store)
    answers = timedelta(days=answers_kept) if answers_kept else None
    await configure(store, timedelta(days=kept), answers_retention=answers)
    keys = [HistoryKey(0, "7", 1_763_712_000_000_000_000 + number) for number in range(3 * MOST)]
    for number, key in enumerate(keys):
        parts = ReceivedMessage(f"{number}-1,{number}-2", key, number)
        await received.note(TENANT, BOT, [("100001", parts), ("100002", parts._replace(reference=""))])
        if number == MOST:
            stack.advance_clock(timedelta(days=60))
    for number in (0, MOST, 2 * MOST, 3 * MOST - 1):
        for part in (1, 2):
            found = await received.quoted(TENANT, BOT, "100001", f"{number}-{part}")
            assert found == ReceivedMessage(f"{number}-{part}", keys[number], number)
    assert await received.quoted(TENANT, BOT, "100001", "0") is None
    assert await received.quoted(TENANT, BOT, "100002", "0-1") is None
    pages = [one async for one in stack.redis.scan_iter("replies:*:before:*:100001:*")]
    assert len(pages) in (1, 2, 3)
    shortest = timedelta(milliseconds=min([await stack.redis.pttl(one) for one in pages]))
    assert timedelta(days=125) < shortest <= timedelta(days=190)
    await received.forget(TENANT, BOT, "100001")
    assert not [one async for one in stack.redis.scan_iter("replies:*:100001*")]


async def test_a_repeated_event_is_added_and_relayed_once(school: School) -> None:
    message = await school.send()
    for _ in range(2):
        await school.write(MARIA, "Twice", quoted=message, event="e")
    event = {"id": "e", "channel": BOT, "kind": "text", "user_id": "100001", "event_text": "Twice", "source": TENANT}
    task = NewTask(encode({**event, "reply_message_id": message}), TENANT, lane="again", user="telegram-bot:100001")
    await school.core.queue.put("replies", task)  # as after a crash
    await until(school.is_idle)
    (thread,) = await school.threads()
    assert await school.said(thread) == [("person", "Twice")]
    assert len(school.got(ANNA)) == 1
    assert len(school.got(MARIA)) == 2


async def test_an_answer_takes_the_way_that_is_the_persons_now(school: School) -> None:
    await school.write(MARIA, "Hello", quoted=await school.send())
    (thread,) = await school.threads()
    users = school.core.directory.users
    await users.remove_contact(TENANT, 1, BOT, "100001")
    with pytest.raises(Conflict) as refused:
        await school.core.relay.to_person(thread, ANNA, 7, Written("e", "Hi"), "")
    assert refused.value.code == "THREAD_UNREACHABLE"
    await school.write(ANNA, "Hi there", quoted=school.last_to(ANNA))
    assert school.got(ANNA)[-1] == "Это сообщение не передано: получателю сейчас нельзя написать."
    await users.add_contact(TENANT, 2, BOT, "100001")  # the account is another person's now
    await users.add_contact(TENANT, 1, BOT, "100011")
    await school.core.relay.to_person(thread, ANNA, 7, Written("e", "Hi"), "")
    await until(school.is_idle)
    assert [one.address for one in school.courier.attempted if one.text.endswith("Hi")] == ["100011"]


async def test_an_answer_goes_to_the_new_number_of_who_has_only_sms(school: School) -> None:
    sms, users = PaidCourier(), school.core.directory.users
    await school.stack.courier(sms)
    await users.create(TENANT, User(3, "Vera", role="student", contacts={"sms": ["+79990000001"]}))
    await school.core.directory.groups.add_member(TENANT, "8b", 3)
    delivery = NewDelivery(TENANT, Sender(7), "No classes", (), ["sms"], replies="sender")
    accepted = await school.core.sending.send(Order(delivery, [Addressee(3)]), Caller(TENANT, person=ANNA))
    await school.stack.finished(accepted.key)
    await school.write(VERA, "Hello", channel="sms", user_id="+79990000001")
    asked = school.last_to(ANNA)
    await users.remove_contact(TENANT, 3, "sms", "+79990000001")
    await users.add_contact(TENANT, 3, "sms", "+79990000002")
    await users.add_contact(TENANT, 2, "sms", "+79990000001")  # somebody else has the number now
    await school.write(ANNA, "Hi", quoted=asked)
    assert sms.attempted[-1].text.endswith("Hi")
    assert (sms.attempted[-1].address, sms.addresses.count("+79990000001")) == ("+79990000002", 2)
    await users.remove_contact(TENANT, 3, "sms", "+79990000002")
    await school.write(ANNA, "Are you there?", quoted=asked)
    assert school.got(ANNA)[-1] == "Это сообщение не передано: получателю сейчас нельзя написать."


@pytest.mark.parametrize(
    ("reader", "mailed_to", "notice"),
    [
        (User(9, "Semenov", role="trainer", contacts={"sms": ["+79990000009"]}), [], "Записано"),
        (User(9, "Semenov", role="trainer"), [], "Записано"),
        (User(9, "Semenov", role="trainer", email="s@school.example"), ["s@school.example"], "Передано"),
        (User(9, "Semenov", role="trainer", email="taken@school.example"), [], "Записано"),
        (User(9, "Semenov", role="trainer", email="s@school.example", opt_out=["email"]), [], "Записано"),
    ],
)
async def test_who_writes_to_a_reader_without_a_bot_reads_whether_it_was_passed_on(
    school: School, reader: User, mailed_to: list[str], notice: str
) -> None:
    """A reply by SMS would be paid; the address of the directory may be a contact of another person."""
    mail, core = FakeCourier("email"), school.core
    await school.stack.courier(mail, replace(QUICK, mailbox="reply@school.example"))
    await core.directory.users.create(TENANT, reader)
    await core.directory.users.add_contact(TENANT, 2, "email", "taken@school.example")
    await core.directory.ownerships.own(TENANT, 9, "group", "8b")
    await school.write(MARIA, "May I come?", quoted=await school.send(reader))
    words = {"Записано": "Записано. Semenov увидит это в кабинете.", "Передано": "Передано: Semenov."}
    assert school.got(MARIA)[1:] == [words[notice]]
    assert mail.addresses == mailed_to
    assert [one.person.name for one in await school.threads(Inbox("user", "9"))] == ["Maria"]


async def test_files_and_long_words_are_named_and_not_cut(school: School) -> None:
    message, words = await school.send(), "x" * 4090
    await school.write(MARIA, words, quoted=message, attachments=[{"type": "photo"}, {"type": "voice"}])
    head, body = school.got(ANNA)
    assert head.startswith("Maria отвечает на «No classes»:\n(Файлы не переданы: 2.)")
    assert body.startswith(words)
    assert school.got(MARIA)[-1].startswith("Передано: Anna Petrova.\nНе передано файлов: 2. Передаются до 10")


async def test_the_files_of_a_message_go_out_together_without_what_a_camera_wrote(school: School) -> None:
    message = await school.send()
    album = {"a": photograph(), "b": photograph(1), "c": b"II*\0raw", "d": b"%PDF"}
    async with fetching(school, album):
        await school.write(MARIA, "My work", quoted=message, attachments=[*attached(album, "photo"), CONTACT])
        (relayed,) = (one for one in school.courier.attempted if one.text.startswith("Maria"))
        assert relayed.text.startswith("Maria отвечает на «No classes»:\nMy work\n(Файлы не переданы: 2.)")
        assert [(one.type, one.name) for one in school.files_of(relayed)] == [("photo", "photo.jpg")] * 3
        (thread,) = await school.threads()
        assert thread.newest
        assert thread.newest.files == 2
        stored = [await school.content_of(one.id) for one in thread.newest.attachments]
        assert stored == [without_metadata(photograph()), without_metadata(photograph(1)), b"%PDF"]
        answer = attached({"a": b""}, "document", file_name="Marks.pdf")
        await school.write(ANNA, "", quoted=school.last_to(ANNA), attachments=answer)
    last = school.courier.attempted[-1]
    assert (last.text, [one.name for one in school.files_of(last)]) == ("Anna Petrova отвечает:", ["Marks.pdf"])


async def test_a_text_waits_for_the_files_written_before_it_and_not_for_longer_than_that(school: School) -> None:
    message, files = await school.send(), {"a": b"%PDF"}
    async with fetching(school, files) as fetches:
        fetches.clear()
        for text, event in (("First", "e1"), ("Second", "e2")):
            about = {"id": event, "channel": BOT, "kind": "text", "user_id": "100001", "chat_id": "100001"}
            file = attached(files if text == "First" else {}, "document")
            await school.put({**about, "event_text": text, "reply_message_id": message, "attachments": file})
        await until(lambda: school.has(f"bot_files.{BOT}", "taken"))
        assert await school.threads() == []
        fetches.set()
        await until(school.is_idle)
    (thread,) = await school.threads()
    assert await school.said(thread) == [("person", "First"), ("person", "Second")]


async def test_files_that_no_process_fetches_are_named_as_not_passed_on(school: School) -> None:
    message = await school.send()
    await open_files_tube(school.core.client, BOT)
    about = {"id": "e1", "channel": BOT, "kind": "text", "user_id": "100001", "chat_id": "100001", "event_text": "Here"}
    await school.put({**about, "reply_message_id": message, "attachments": attached({"a": b""}, "photo")})
    await until(lambda: school.has("replies", "waiting"))
    school.stack.advance_clock(LONGEST)
    await until(school.is_idle)
    assert school.got(ANNA)[0].startswith("Maria отвечает на «No classes»:\nHere\n(Файлы не переданы: 1.)")
    assert school.got(MARIA)[-1].startswith("Передано: Anna Petrova.\nНе передано файлов: 1.")


async def test_a_person_sends_ten_files_a_day_and_is_asked_about_an_address_in_a_name(school: School) -> None:
    message, files = await school.send(), {f"f{n}": b"%PDF" for n in range(8)}
    async with fetching(school, files):
        for _ in range(2):
            await school.write(MARIA, "Here", quoted=message, attachments=attached(files, "document"))
        (thread,) = await school.threads()
        said = await school.core.threads.messages(thread, 0, 9)
        assert [(one.files, len(one.attachments)) for one in said] == [(6, 2), (0, 8)]
        assert school.got(MARIA)[-1].endswith("\nСледующий файл можно прислать через 24 ч.")
        school.stack.advance_clock(timedelta(days=1, minutes=5))
        named = attached({"f1": b""}, "document", file_name="my_79991234567.pdf")
        await school.write(MARIA, "", quoted=message, attachments=named)
        assert school.got(MARIA)[-1].startswith("В сообщении есть контакты: 79991234567. Получатель")
        asked = school.courier.attempted[-1].content
        assert asked
        await school.press(MARIA, asked.inline[0][0].data)
        (thread,) = await school.threads()
        assert thread.newest
        assert [one.name for one in thread.newest.attachments] == ["my_79991234567.pdf"]


async def test_a_thread_counts_what_is_unread_and_goes_with_its_person(school: School) -> None:
    message = await school.send()
    for text in ("one", "two", "three"):
        await school.write(MARIA, text, quoted=message)
    threads, (thread,) = school.core.threads, await school.threads()
    assert (thread.unread, await threads.count_unread(TENANT, ANNAS)) == (3, 1)
    assert await threads.mark_read(thread, 2) == 1
    assert [await threads.mark_read(thread, number) for number in (3, 1)] == [0, 0]
    assert (await threads.count_unread(TENANT, ANNAS), await threads.page(TENANT, ANNAS, None, 9, unread=True)) == (
        0,
        ([], None),
    )
    assert await threads.of_person(TENANT, 1) == [thread.id]
    await threads.merge(TENANT, 2, 1)
    assert await threads.of_person(TENANT, 2) == [thread.id]
    await threads.forget(TENANT, 2)
    await threads.forget(TENANT, 1)
    assert (await school.threads(), await threads.of_person(TENANT, 1)) == ([], [])
    with pytest.raises(NotFound):
        await threads.find(TENANT, thread.id)


async def test_who_writes_too_much_is_told_when_the_next_may_come(school: School) -> None:
    message = await school.send()
    for number in range(7):
        await school.write(MARIA, f"number {number}", quoted=message)
    (thread,) = await school.threads()
    assert (thread.messages, len(school.got(ANNA))) == (5, 5)
    held = [text for text in school.got(MARIA) if text.startswith("Слишком много сообщений подряд")]
    assert 1 <= len(held) <= 2
    assert held[0].endswith("Следующее можно написать через 5 мин.")
    await school.core.directory.users.add_contact(TENANT, 1, "vk", "200001")
    await school.write(MARIA, "too much there, too", channel="vk", user_id="200001")
    assert await school.threads(OFFICE) == []
    school.stack.advance_clock(timedelta(minutes=6))
    await school.write(MARIA, "again", quoted=message)
    assert (await school.said(thread))[-1] == ("person", "again")
    await school.write(MARIA, "there, too", channel="vk", user_id="200001")
    assert [one.person.id for one in await school.threads(OFFICE)] == [1]


async def test_the_files_of_a_deleted_person_go_at_once_and_those_of_others_stay(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads_module, "_AT_ONCE", 1)
    of_maria = await school.send()
    of_boris = await school.send(to=BORIS)
    files, same = {"a": b"%PDF"}, "Work.pdf"
    async with fetching(school, files):
        await school.write(MARIA, "", quoted=of_maria, attachments=attached(files, "document", file_name=same))
        await school.write(BORIS, "", quoted=of_boris, attachments=attached(files, "document", file_name=same))
        answer = attached(files, "document", file_name="Marks.pdf")
        await school.write(ANNA, "", quoted=school.last_to(ANNA), attachments=answer)
    of_each: dict[Id, list[str]] = {}
    for thread in await school.threads():
        messages = await school.core.threads.messages(thread, 0, 10)
        of_each[thread.person.id] = [file.id for one in messages for file in one.attachments]
    assert {person: len(found) for person, found in of_each.items()} == {1: 1, 2: 2}
    await school.core.threads.forget(TENANT, 2)
    uploads = Uploads(school.core.store)
    assert [bool(one) for one in await uploads.keep(TENANT, [*of_each[2], *of_each[1]])] == [False, False, True]
    await school.write(BORIS, "once more", quoted=of_boris)
    await school.core.threads.forget(TENANT, 7)
    assert await school.threads() == [], "its inbox goes, too"


async def test_a_thread_passes_on_ten_messages_a_minute_of_both_sides(school: School) -> None:
    message = await school.send()
    await school.write(MARIA, "Question", quoted=message)
    quoted = school.last_to(ANNA)
    for number in range(10):
        await school.write(ANNA, f"Answer {number}", quoted=quoted, event=f"a{number}")
    (thread,) = await school.threads()
    assert await school.said(thread) == [("person", "Question"), *(("staff", f"Answer {n}") for n in range(9))]
    assert (
        school.got(ANNA)[-1] == "Слишком много сообщений подряд: это не передано. Следующее можно написать через 1 мин."
    )
    with pytest.raises(QuotaExceeded):
        await ReplyLimits(school.core.store).check_thread(TENANT, thread.id, "ff")
    await ReplyLimits(school.core.store).check_thread(TENANT, "another thread", "ff")


async def test_outside_office_hours_a_message_is_accepted_and_shown_when_they_begin(stack: Stack) -> None:
    opening = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=20)
    day = Opening(frozenset({opening.weekday()}), opening.time(), time.max)
    policy = SendingPolicy(office_hours=TenantOfficeHours(OfficeHours([day])))
    async with school_on(stack, policy=policy) as school:
        message = await school.send()
        for text in ("And on Friday?", "And when?"):
            await school.write(MARIA, text, quoted=message)
        (thread,) = await school.threads()
        assert await school.said(thread) == [("person", "And on Friday?"), ("person", "And when?")]
        assert school.got(ANNA) == []
        notice = f"Сейчас нерабочее время. Anna Petrova получит ваше сообщение {opening:%d.%m, %H:%M}."
        assert school.got(MARIA) == ["No classes", notice]
        waiting, _ = await school.core.deliveries.list(TENANT, state=DeliveryState.SCHEDULED)
        assert [one.deliver_at for one in waiting] == [opening, opening]
        assert {one.text.split("\n")[1] for one in waiting} == {"And on Friday?", "And when?"}
        await school.write(BORIS, "Me, too", quoted=await school.send(to=BORIS))
        at = f"{opening.day} {opening:%B, %H:%M}"
        assert school.got(BORIS)[-1] == f"It is outside office hours. Anna Petrova gets your message on {at}."


async def test_a_notice_goes_out_in_quiet_hours_and_what_others_write_waits(stack: Stack) -> None:
    now = datetime.now(UTC)
    begin, end = (now - timedelta(hours=1)).time(), (now + timedelta(hours=1)).time()
    opening = (now + timedelta(hours=2)).replace(second=0, microsecond=0)
    office = OfficeHours([Opening(frozenset({opening.weekday()}), opening.time(), time.max)])
    quiet = TenantQuietHours(QuietHours(begin, end))
    async with school_on(stack, policy=SendingPolicy(quiet_hours=quiet, office_hours=TenantOfficeHours(office))) as it:
        accepted = await it.core.sending.send(
            Order(
                NewDelivery(TENANT, Sender(7), "No classes", (), [BOT], replies="sender"), [Addressee(1)], urgent=True
            ),
            Caller(TENANT, is_admin=True, may_be_urgent=True),
        )
        await stack.finished(accepted.key)
        await it.write(MARIA, "And on Friday?", quoted=it.last_to(MARIA))
        notice = f"Сейчас нерабочее время. Anna Petrova получит ваше сообщение {opening:%d.%m, %H:%M}."
        assert it.got(MARIA) == ["No classes", notice]
        (thread,) = await it.threads()
        await it.core.relay.to_person(thread, ANNA, 7, Written("e1", "No"), "")
        waiting, _ = await it.core.deliveries.list(TENANT, state=DeliveryState.SCHEDULED)
        assert sorted(one.text.split("\n")[1] for one in waiting) == ["And on Friday?", "No"]


async def test_the_audit_finds_a_message_that_is_lost_doubled_or_in_two_threads(school: School) -> None:
    message = await school.send()
    for text in ("one", "two"):
        await school.write(MARIA, text, quoted=message)
    (thread,) = await school.threads()
    store, shard = school.core.store, int(thread.id.partition(".")[0])
    key = KEYS["thread"].at(shard, thread.id)
    copy = KEYS["thread"].at(shard, f"{shard}.{'0' * 20}")
    inbox, unread = (KEYS[name].at(shard, TENANT, str(ANNAS)) for name in ("inbox", "unread_threads"))
    before = {one: await school.stack.redis.dump(one) or b"" for one in (key, inbox, unread)}
    ttl = 10_000_000
    damages = (
        ("HDEL", key, "message:1"),
        ("HSET", key, "event:again", "2"),
        ("HSET", key, "messages", "3"),
        ("ZADD", inbox, "5", thread.id),
        ("HSET", key, "unread", "0"),
        ("COPY", key, copy),
    )
    for damage in damages:
        assert await violations_in(store) == [], damage
        await store.command(*damage)
        assert {one.rule for one in await violations_in(store)} == {"I31"}, damage
        await store.command("DEL", copy)
        for one, content in before.items():
            await school.stack.redis.restore(one, ttl, content, replace=True)


async def test_an_inbox_is_read_in_pages(school: School) -> None:
    for user in (MARIA, BORIS):
        await school.write(user, "Hello", quoted=await school.send(to=user))
    threads = school.core.threads
    first, cursor = await threads.page(TENANT, ANNAS, None, 1)
    second, end = await threads.page(TENANT, ANNAS, cursor, 1)
    assert ([one.person.name for one in (*first, *second)], end) == (["Boris", "Maria"], None)
    key = KEYS["inbox"].at(school.core.store.shard_of(f"{TENANT}:{ANNAS}"), TENANT, str(ANNAS))
    newest = {one.id: one.last for one in (*first, *second)}
    await school.stack.redis.zadd(key, dict.fromkeys(newest, 1))  # in one millisecond
    first, cursor = await threads.page(TENANT, ANNAS, None, 1)
    second, end = await threads.page(TENANT, ANNAS, cursor, 1)
    assert (sorted(one.person.name or "" for one in (*first, *second)), end) == (["Boris", "Maria"], None)
    await school.stack.redis.zadd(key, newest)


async def test_an_office_without_a_reader_is_refused_and_its_replies_go_to_another_one(school: School) -> None:
    groups, users = school.core.directory.groups, school.core.directory.users
    await groups.create(TENANT, Group("club", "Club"), [BORIS.id, OLGA.id])
    await groups.add_member(TENANT, "dean", ANNA.id)
    message = await school.send(replies="club")
    await users.update(TENANT, 8, UserChange(blocked=True))
    with pytest.raises(Invalid) as refused:
        await school.order(replies="club")
    assert (refused.value.code, refused.value.path) == ("OFFICE_NOT_FOUND", "replies")
    await school.write(MARIA, "May I come?", quoted=message)
    assert await school.threads(Inbox("office", "club")) == [], "only a student is left there"
    (thread,) = await school.threads(OFFICE)
    assert await school.said(thread) == [("person", "May I come?")]
    await groups.create(TENANT, Group("helpdesk"), [])
    await school.write(MARIA, "Hello", quoted=await school.send(replies="helpdesk"))
    assert len(await school.threads(Inbox("office", "helpdesk"))) == 1, "a program reads a group without members"
    assert (await school.order(replies="helpdesk")).empty_office, "and the sender hears of it"
    assert not (await school.order(replies=OFFICE.id)).empty_office


async def test_without_a_reader_of_the_office_nobody_is_told_that_a_message_was_passed_on(school: School) -> None:
    await school.core.directory.groups.create(TENANT, Group("club", "Club"), [BORIS.id, OLGA.id])
    message = await school.send(replies="club")
    await school.core.directory.users.update(TENANT, OLGA.id, UserChange(blocked=True))
    await school.write(MARIA, "May I come?", quoted=message)
    assert await school.threads(OFFICE) == []
    assert school.got(MARIA)[-1] == "Ответы на это сообщение никто не читает."


async def test_the_reply_of_a_blocked_person_is_counted_for_the_sender_and_noted_for_administrators(
    school: School,
) -> None:
    message = await school.send()
    await school.core.directory.users.update(TENANT, 1, UserChange(blocked=True))
    for text in ("And tomorrow?", "Why not?"):
        await school.write(MARIA, text, quoted=message)
    assert await school.threads() == []
    assert school.got(MARIA) == ["No classes"]
    (logged,), _ = await ActionLog(school.core.store).page(TENANT, ActionFilter(), None, 10)
    assert logged.action.what == "a message of a blocked person was not passed on"
    assert (logged.action.target, logged.action.count) == ("/v1/users/1", 2)
    received = await ReceivedMessages(school.core.store).last(TENANT, BOT, "100001", since=0)
    assert received
    history = await HistoryReader(school.core.store).read_fields(received.key, ["refused_replies"])
    assert history == {"refused_replies": "1"}


async def test_an_office_that_is_no_group_is_refused(school: School) -> None:
    with pytest.raises(Invalid) as refused:
        await school.order(replies="nobody")
    assert (refused.value.code, refused.value.path) == ("OFFICE_NOT_FOUND", "replies")


async def test_who_types_an_address_is_asked_before_the_other_side_sees_it(school: School) -> None:
    message, own = await school.send(), "My number is 8 912 345-67-89"
    await school.write(MARIA, own, quoted=message, event="own")
    assert (await school.threads(), school.got(ANNA)) == ([], [])
    asked = next(one for one in school.courier.attempted if one.text.startswith("В сообщении есть контакты"))
    assert "8 912 345-67-89" in asked.text
    assert asked.content
    ((button,),) = asked.content.inline
    await school.press(BORIS, button.data)  # it is not his
    assert await school.threads() == []
    for _ in range(2):
        await school.press(MARIA, button.data)
    (thread,) = await school.threads()
    assert await school.said(thread) == [("person", own)]
    assert [own in text for text in school.got(ANNA)] == [True]
    await school.write(ANNA, "Mine is anna@example.org", quoted=school.last_to(ANNA))
    assert not any("anna@" in text for text in school.got(MARIA))
    assert "anna@example.org" in school.got(ANNA)[-1]


@pytest.mark.parametrize(
    ("visible", "kind"),
    [
        (AnswerVisibility.HIDDEN, AnswerKind.CHOICE),
        (AnswerVisibility.HIDDEN, AnswerKind.NUMBER),
        (AnswerVisibility.ANONYMOUS, AnswerKind.CHOICE),
    ],
)
@pytest.mark.parametrize("is_quoted", [True, False])
async def test_words_to_a_hidden_question_wait_for_their_author(
    school: School, visible: AnswerVisibility, kind: AnswerKind, is_quoted: bool
) -> None:
    """`да` to "Does the teacher hurt you?" reached the teacher, with the name of the child."""
    options = [Option("yes", "Да"), Option("no", "Нет")] if kind is AnswerKind.CHOICE else []
    message = await school.send(question=Question(kind, options, "ru", visible=visible), text="Обижают?")
    await school.write(MARIA, "да, +79991234567", quoted=message if is_quoted else "")
    assert (await school.threads(), school.got(ANNA)) == ([], [])
    assert school.got(MARIA)[-1].startswith("Ответы на этот вопрос скрыты.")
    await school.press(MARIA, school.button())
    assert school.got(MARIA)[-1].startswith("В сообщении есть контакты")
    assert await school.threads() == []
    await school.press(MARIA, school.button())
    (thread,) = await school.threads()
    assert await school.said(thread) == [("person", "да, +79991234567")]


@pytest.mark.parametrize("visible", [AnswerVisibility.HIDDEN, AnswerVisibility.ANONYMOUS, AnswerVisibility.NAMED])
@pytest.mark.parametrize("text", ["Да", "да!", "Приду в пять"])
async def test_words_after_a_later_message_may_answer_a_hidden_question(
    school: School, visible: AnswerVisibility, text: str
) -> None:
    """They went on with the name: the later message asks nothing."""
    options = [Option("yes", "Да"), Option("no", "Нет")]
    await school.send(question=Question(AnswerKind.CHOICE, options, "ru", visible=visible), text="Обижают?")
    await school.send(text="Завтра в пять")
    await school.write(MARIA, text)
    is_asked = visible is not AnswerVisibility.NAMED and text != "Приду в пять"
    assert bool(await school.threads()) is not is_asked
    assert school.got(MARIA)[-1].startswith("Ответы на этот вопрос скрыты.") is is_asked


async def test_stop_as_a_whole_message_ends_the_channel_and_only_start_takes_it_back(school: School) -> None:
    users = school.core.directory.users

    async def opt_out() -> list[str]:
        (user,) = await users.lookup(TENANT, [1])
        return list(user.opt_out) if user else []

    message = await school.send()
    await school.write(MARIA, "Stop!", event="s1")
    await school.write(MARIA, "СТОП", event="s2")
    assert (await opt_out(), len(school.got(MARIA))) == ([BOT], 2)
    assert school.got(MARIA)[-1] == "Больше не пишем вам сюда. Вернуть: СТАРТ"
    await school.write(MARIA, "Stop this lesson, please", quoted=message)
    (thread,) = await school.threads()
    with pytest.raises(Conflict):
        await school.core.relay.to_person(thread, ANNA, 7, Written("e", "No"), "")
    assert await opt_out() == [BOT]
    assert len(school.got(MARIA)) == 2, "no notice that it was passed on: its answer would not come here"
    await school.write(MARIA, "start", event="s3")
    assert (await opt_out(), school.got(MARIA)[-1]) == ([], "Снова пишем вам сюда. Отказаться: СТОП")
    assert await school.said(thread) == [("person", "Stop this lesson, please")]
    assert len(school.got(ANNA)) == 1


async def test_stop_of_a_stranger_and_start_of_who_gets_messages_are_texts_for_the_bots(school: School) -> None:
    words = OptOuts(school.core.directory, TENANT)
    assert not await words.is_asked(BOT, "100099", "STOP")
    assert not await words.is_asked(BOT, "100001", "START")
    assert await words.is_asked(BOT, "100001", "СТОП")


async def test_a_muted_person_is_not_told_and_its_words_wait_unmarked(school: School) -> None:
    message, threads = await school.send(), school.core.threads
    await school.write(MARIA, "one", quoted=message)
    (thread,) = await school.threads()
    await threads.mark(thread, "mute")
    await school.write(MARIA, "two", quoted=message)
    (thread,) = await school.threads()
    assert (thread.is_muted, thread.unread, await threads.count_unread(TENANT, ANNAS)) == (True, 0, 0)
    assert (len(school.got(ANNA)), school.got(MARIA)[1:]) == (1, ["Передано: Anna Petrova."])
    assert await school.said(thread) == [("person", "one"), ("person", "two")]
    await threads.mark(thread, "unmute")
    await school.write(MARIA, "three", quoted=message)
    assert ((await school.threads())[0].unread, len(school.got(ANNA))) == (1, 2)


async def test_a_hidden_thread_comes_back_with_the_next_message(school: School) -> None:
    message, threads = await school.send(), school.core.threads
    await school.write(MARIA, "one", quoted=message)
    (thread,) = await school.threads()
    await threads.mark(thread, "hide")
    assert (await school.threads(), await threads.count_unread(TENANT, ANNAS)) == ([], 0)
    await school.write(MARIA, "two", quoted=message)
    (thread,) = await school.threads()
    assert (thread.unread, len(await school.said(thread))) == (1, 2)


@pytest.mark.parametrize("kept", [90, 800])
async def test_a_thread_lives_for_its_own_setting_after_the_last_message(school: School, kept: int) -> None:
    await configure(school.core.store, timedelta(days=30), timedelta(days=kept))
    await school.write(MARIA, "one", quoted=await school.send())
    (thread,) = await school.threads()
    key = KEYS["thread"].at(0, thread.id)
    days = int(await school.core.store.command("PTTL", key)) / timedelta(days=1).total_seconds() / 1000
    assert kept - 1 < days <= kept
    of_person = KEYS["threads_of"].at(0, TENANT, "1")
    await school.core.store.command("PEXPIRE", of_person, 60_000)  # as if most of its time had passed
    await school.core.threads.add_of_staff(thread, "a", ThreadMessage(0, "staff", 0, 7, "Yes"))
    owner = await school.core.store.command("PTTL", of_person)
    assert owner > await school.core.store.command("PTTL", key), "it is found with its person as long as it lives"
    assert owner <= (kept + 1) * 86_400_000, "and no longer"
    school.stack.advance_clock(timedelta(days=kept + 1))
    await school.write(BORIS, "two", quoted=await school.send(to=BORIS))
    await school.core.store.command("DEL", key)  # as the server does, whose clock stands
    assert [one.person.id for one in await school.threads()] == [2]
    assert await school.core.store.command("ZCARD", KEYS["inbox"].at(0, TENANT, str(ANNAS))) == 1


async def test_the_threads_of_a_person_have_a_lifetime_also_if_the_store_is_lost_in_between(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command after the one that writes the key arrives."""
    await school.write(MARIA, "one", quoted=await school.send())
    (thread,) = await school.threads()
    store, plain = school.core.store, school.core.store.command
    key = KEYS["threads_of"].at(0, TENANT, "1")
    await plain("DEL", key)

    async def lost(*words: Word) -> object:
        if await plain("EXISTS", key):
            raise StoreUnavailable("lost")
        return await plain(*words)

    monkeypatch.setattr(store, "command", lost)
    with suppress(StoreUnavailable):
        await school.core.threads.add_of_staff(thread, "a", ThreadMessage(0, "staff", 0, 7, "Yes"))
    assert int(await plain("PTTL", key)) > 0


async def test_an_edit_of_a_message_that_waits_for_its_author_replaces_it(school: School) -> None:
    await school.write(MARIA, "Call 8 912 345-67-89", quoted=await school.send(), message_id=61)
    first = school.button()
    await school.write(MARIA, "Call 8 912 345-67-80", kind="edited", message_id=61)
    assert "8 912 345-67-80" in school.got(MARIA)[-1]
    second = school.button()
    await school.press(MARIA, first)
    assert await school.threads() == []  # the old words are not sent any more
    await school.press(MARIA, second)
    (thread,) = await school.threads()
    assert await school.said(thread) == [("person", "Call 8 912 345-67-80")]
    await school.write(MARIA, "Mail me: m@home.example", quoted=await school.send(), message_id=62)
    await school.write(MARIA, "Write to me here", kind="edited", message_id=62)
    assert await school.said(thread) == [("person", "Call 8 912 345-67-80"), ("person", "Write to me here")]
    assert not any("home.example" in text for text in school.got(ANNA))


async def test_the_thread_of_a_merged_person_is_answered_over_the_contacts_of_the_one_that_stays(
    school: School,
) -> None:
    await school.write(MARIA, "Hello", quoted=await school.send())
    (thread,) = await school.threads()
    await school.core.directory.users.merge(TENANT, 2, 1)
    await school.core.threads.merge(TENANT, "2", "1")  # ids as of a path
    await school.write(ANNA, "Hi", quoted=school.last_to(ANNA))
    assert [one.address for one in school.courier.attempted][-1] == "100001"
    assert await school.core.threads.of_person(TENANT, 2) == [thread.id]
    await school.write(MARIA, "And now?", quoted=school.last_to(MARIA))
    assert "And now?" in school.got(ANNA)[-1]


async def test_who_was_merged_with_a_sender_reads_and_answers_what_comes_to_its_older_messages(school: School) -> None:
    old = User("anna-old", "Anna P.", role="trainer", contacts={BOT: ["100009"]})
    await school.core.directory.users.create(TENANT, old)
    await school.core.directory.ownerships.own(TENANT, "anna-old", "group", "8b")
    message = await school.send(old)
    await school.write(MARIA, "Before", quoted=message)
    first = school.last_to(old)
    await school.core.directory.users.merge(TENANT, 7, "anna-old")
    for _ in range(2):  # a repeat changes nothing
        await school.core.threads.merge(TENANT, "7", "anna-old")
    before, anna = len(school.courier.attempted), await school.core.directory.users.find(TENANT, 7)
    await school.write(MARIA, "After", quoted=message)
    assert "After" in school.courier.attempted[before].text
    assert school.courier.attempted[before].address == anna.contacts[BOT][0]
    (thread,) = await school.threads(Inbox("user", "anna-old"))
    assert await school.core.relay.readers.inboxes_of(TENANT, anna) == [ANNAS, thread.inbox]
    assert not await school.core.relay.readers.reads(TENANT, thread.inbox, OLGA)
    await school.write(old, "Yes", quoted=first)  # its account is one of hers now
    assert school.got(MARIA)[-1] == "Anna Petrova отвечает:\nYes"
    await school.core.directory.users.create(TENANT, User("anna", "Anna", role="trainer"))
    await school.core.directory.users.merge(TENANT, "anna", 7)
    await school.core.threads.merge(TENANT, "anna", 7)
    anna = await school.core.directory.users.find(TENANT, "anna")
    assert thread.inbox in await school.core.relay.readers.inboxes_of(TENANT, anna)
    await school.core.threads.forget(TENANT, "anna")
    assert await school.threads(thread.inbox) == []


@pytest.mark.parametrize("end", ["deleted", "blocked", "merged, then deleted"])
@pytest.mark.parametrize("office", ["dean", ""])
async def test_a_reply_to_who_is_not_there_any_more_goes_to_the_office_or_is_refused_in_words(
    stack: Stack, office: str, end: str
) -> None:
    async with school_on(stack, office) as school:
        users, threads = school.core.directory.users, school.core.threads
        await users.create(TENANT, User(9, "Dean", role="staff"))
        await school.core.directory.groups.add_member(TENANT, "dean", 9)
        message, other = await school.send(), await school.send(to=BORIS)
        await school.write(BORIS, "Hello", quoted=other)
        relayed = school.last_to(BORIS)  # a message of the thread: "passed on"
        if end == "blocked":
            await users.update(TENANT, 7, UserChange(blocked=True))
        else:
            if end != "deleted":
                await users.merge(TENANT, 8, 7)
                await threads.merge(TENANT, 8, 7)
            await users.delete(TENANT, 7 if end == "deleted" else 8)
            await threads.forget(TENANT, 7 if end == "deleted" else 8)
        for writer, quoted in ((MARIA, message), (BORIS, relayed)):
            await school.write(writer, "Where?", quoted=quoted)
        if office:
            assert {one.person.name for one in await school.threads(OFFICE)} == {"Maria", "Boris"}
        else:
            assert school.got(MARIA)[-1] == "Ответы на это сообщение никто не читает."
            assert school.got(BORIS)[-1] == "Nobody reads replies to this message."


@pytest.mark.parametrize("quotes", [True, False])
async def test_an_answer_to_who_was_deleted_goes_to_nobody_and_its_author_is_told(school: School, quotes: bool) -> None:
    await school.write(MARIA, "May I stay at home?", quoted=await school.send())
    asked = school.last_to(ANNA)
    await school.core.directory.users.delete(TENANT, 1)
    await school.core.threads.forget(TENANT, 1)
    await school.write(ANNA, "Private answer", quoted=asked if quotes else "")
    assert school.got(ANNA)[-1] == "Это сообщение не передано: получателю сейчас нельзя написать."
    assert (await school.threads(OFFICE), school.got(OLGA)) == ([], [])


async def test_a_reply_to_an_office_that_is_gone_goes_to_that_of_the_settings(school: School) -> None:
    await school.core.directory.groups.create(TENANT, Group("old", "Old office"), [8])
    message = await school.send(replies="old")
    await school.core.directory.groups.delete(TENANT, "old")
    await school.write(MARIA, "Where?", quoted=message)
    assert [one.person.name for one in await school.threads(OFFICE)] == ["Maria"]


async def test_who_edits_a_message_that_was_not_passed_on_is_told_so_once(school: School) -> None:
    message, off = await school.send(), await school.send(to=BORIS, replies="off")
    for number in range(6):
        await school.write(MARIA, f"number {number}", quoted=message, message_id=number + 60)
    for text in ("number six", "number 6"):
        await school.write(MARIA, text, kind="edited", message_id=65)
    unedited = "Сообщение, которое вы исправили, не передано, поэтому и правка не передана. Напишите его заново."
    assert school.got(MARIA)[-2:].count(unedited) == 1
    await school.write(BORIS, "Hello", quoted=off, message_id=71)
    await school.write(ANNA, "To whom?", message_id=72)  # quotes nothing
    await school.write(BORIS, "", quoted=await school.send(to=BORIS), message_id=73)
    before = len(school.courier.attempted)
    for writer, number in ((BORIS, 71), (ANNA, 72), (BORIS, 73)):
        await school.write(writer, "edited", kind="edited", message_id=number)
    told = [(one.address, one.text) for one in school.courier.attempted[before:]]
    english = "The message that you have edited was not passed on, so the edit is not either. Write it anew."
    assert told == [("100002", english), ("100007", unedited), ("100002", english)]
    for thread in await school.threads():
        assert "edited" not in [text for _, text in await school.said(thread)]


async def test_a_webhook_learns_of_a_reply_without_its_words(school: School) -> None:
    webhooks = Webhooks(school.core.store, school.core.queue, WebhookClient(allow_private=True))
    await webhooks.create(TENANT, "http://127.0.0.1:9/hook", [EventType.REPLY])
    await school.write(MARIA, "secret words", quoted=await school.send())
    (task,) = await school.stack.take("webhooks")
    sent = json.loads(task.body)
    (thread,) = await school.threads()
    assert sent["type"] == "reply"
    assert (sent["data"]["thread"], sent["data"]["inbox"], sent["data"]["person"]) == (thread.id, "user:7", 1)
    assert (sent["data"]["number"], sent["data"]["channel"], sent["data"]["delivery"]) == (1, BOT, thread.delivery)
    assert "secret" not in task.body
    await school.core.queue.settle(task)


async def test_an_edited_reply_is_passed_on_as_a_correction(school: School) -> None:
    await school.write(MARIA, "At nine?", quoted=await school.send(), message_id=51)
    await school.write(MARIA, "At ten?", kind="edited", message_id=51)
    await school.write(MARIA, "At ten?", kind="edited", message_id=51)  # Telegram also reports edits of other parts
    await school.write(BORIS, "At six?", kind="edited", message_id=51)  # a message of his own that went nowhere
    (thread,) = await school.threads()
    assert await school.said(thread) == [("person", "At nine?"), ("person", "At ten?")]
    assert [one.corrects for one in await school.core.threads.messages(thread, 0, 9)] == [True, False]
    assert school.got(ANNA)[1:] == ["Maria исправляет:\nAt ten?"]
    await school.write(MARIA, "Call 8 912 345-67-89", kind="edited", message_id=51)
    assert "912" not in school.got(ANNA)[-1]
    await school.write(ANNA, "Yes", quoted=school.last_to(ANNA), message_id=52)
    await school.write(ANNA, "No", kind="edited", message_id=52)
    assert school.got(MARIA)[-2:] == ["Anna Petrova отвечает:\nYes", "Anna Petrova исправляет:\nNo"]
