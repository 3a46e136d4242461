"""Works off the tube `answers`: answers to questions by press and text, closings, reminders and opt-outs.

    an update ─▶ Events.put ─▶ tube `answers`, lane = the person ─▶ AnswerWorker.handle ─▶ `core.answers`, in the shard
    of the delivery ─▶ tube `bot_calls.<channel>`: the press is answered, the buttons of the message show the answer

Guarantees: a process that is killed at any point loses no press and counts none twice: the next attempt gets the first
result and makes the same calls. A press that does not count is answered with the reason.

lua/answers puts the tasks that close questions and remind of them; lua/directory those that leave out of what was not
sent yet who opts out.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import count

import msgspec
from msgspec.structs import replace

from core.admission import quotas
from core.answers import AnswerNumbers, Answers, OpenQuestions
from core.answers.answers import AskedRecipient
from core.answers.copies import Copies
from core.answers.current_people import CurrentPeople
from core.answers.numbers import TextMeaning
from core.answers.values import wanted
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.received import MessagePlace, ReceivedMessages
from core.directory import Directory
from core.directory.departed import DepartedPeople
from core.errors import NotFound, Refused
from core.model.clock import Backoff, from_ms
from core.model.delivery import NOTICES, NewDelivery, Recipient, Repeat, Sender
from core.model.history_key import HistoryKey
from core.model.hours import TenantQuietHours
from core.model.question import AnswerVisibility, GivenAnswer
from core.queue import Attempt, NewTask, QueueClient, Result, Retry, Task, Tube, Worker
from core.redis.store import Store
from core.sentence import language_of
from core.updates.answer_words import (
    about_text,
    anonymous_text,
    is_alert,
    kept_text,
    refusal_text,
    result_text,
    which_question,
)
from core.updates.bot_calls import BotCalls, ButtonChange, calls_tube
from core.updates.events import (
    ANSWER_OF,
    ANSWER_RESULT,
    ANSWER_TO,
    ANSWERS_TUBE,
    MAIL,
    NO_ANSWER_TO,
    AnonymousPress,
    Event,
    Events,
    decode,
    identity,
    message_of,
    replies_tube,
)
from core.updates.question_notices import BUTTONS_PAUSE, QuestionNotices

log = logging.getLogger(__name__)

CLOSE, CLOSED, REOPENED, REMIND, WAVE = "close", "closed", "reopened", "remind", "wave"
PLACE, COPIES, CHATS, ANSWERED, OPTED_OUT = "place", "copies", "chats", "answered", "opted_out"
REMOVED_CONTACTS = "removed_contacts"
"""Kinds of tasks: close a question; what follows a closing or a reopening; remind; ask further people; notify a person
of its place; show an answer in other messages; show the totals in group chats; put an answer as an event of a bot;
leave out of what was not sent yet who has opted out.
"""
_LEASE = timedelta(seconds=5)
CHAT_PAUSE = 5
"""Seconds between two changes of the message of a group chat: Telegram allows twenty a minute."""
_CONCURRENCY = 100


def answers_tube() -> Tube:
    """Return the tube of answers. Only an outage of the store takes an attempt."""
    return Tube(ANSWERS_TUBE, attempts=1000, backoff=Backoff(timedelta(milliseconds=500), timedelta(seconds=20)))


class AnswerWorker:
    """Works off the tube `answers`. `quiet_hours`: no reminder is sent in them."""

    def __init__(self, store: Store, client: QueueClient, quiet_hours: TenantQuietHours | None = None) -> None:
        self._client = client
        self._quiet_hours = quiet_hours or TenantQuietHours()
        self._store = store
        self._answers = Answers(store)
        self._questions = OpenQuestions(store)
        self._notices = QuestionNotices(store, client, self._quiet_hours)
        self._numbers = AnswerNumbers(store, self._answers)
        self._copies = Copies(store, self._answers)
        self._deliveries = Deliveries(store, Channels(store))
        self._directory = Directory(store)
        self._received = ReceivedMessages(store)
        self._current = CurrentPeople(store)
        self._departed = DepartedPeople(store)

    async def open(self) -> None:
        """Create the tubes. Raises StoreError."""
        await self._client.tubes.create(answers_tube())
        await self._client.tubes.create(replies_tube())

    def worker(self) -> Worker:
        """Return a worker of the tube, to `run()` and to `stop()`. Any number of processes may have one."""
        return self._client.worker(ANSWERS_TUBE, self.handle, _CONCURRENCY, lease=_LEASE)

    async def handle(self, attempt: Attempt) -> Result:
        """Count an answer and show what came of it, close a question, or remind of it. Raises StoreError."""
        task = attempt.task
        if task.kind == CLOSE:
            await self._close(HistoryKey.of(task.shard, attempt.body), task.tenant)
        elif task.kind == CLOSED:
            await self._finish(HistoryKey.of(task.shard, attempt.body), task)
        elif task.kind == REOPENED:
            await self._show_buttons(HistoryKey.of(task.shard, attempt.body), task)
        elif task.kind in (PLACE, ANSWERED):
            await self._notify(task, attempt.body)
        elif task.kind in (REMIND, WAVE):
            return await self._ask(task, attempt.body)
        elif task.kind in (COPIES, CHATS):
            await self._show_in_messages(task, attempt.body)
        elif task.kind in (OPTED_OUT, REMOVED_CONTACTS):
            leave_out = self._leave_out if task.kind == OPTED_OUT else self._leave_out_contacts
            await leave_out(task.tenant, attempt.body)
        else:
            await self._answer(task.tenant, decode(attempt.body))
        return None

    async def _answer(self, tenant: str, event: Event) -> None:
        await (self._text if ANSWER_TO in event else self._press)(tenant, event)

    async def _finish(self, key: HistoryKey, task: Task) -> None:
        try:
            await self._notices.finish(key, task.tenant, from_ms(task.claimed))
            await self._show_in_chats(key, task)
        except NotFound:
            log.info("question of %s: its delivery is no longer kept", key.id)

    async def _ask(self, task: Task, body: str) -> Result:
        """Remind, or ask further people, outside quiet hours."""
        suffix, _, wave = body.rpartition(" ")
        key, quiet_hours = HistoryKey.of(task.shard, suffix), self._quiet_hours.of(task.tenant)
        now = from_ms(task.claimed)
        if moved := quiet_hours.moved(now) if quiet_hours else None:
            return Retry(moved - now, error="quiet hours")
        try:
            ask = self._questions.remind if task.kind == REMIND else self._questions.ask_next
            result, people = await ask(key, task.tenant, int(wave))
            log.info("question of %s: %s %s: %s, %d people", key.id, task.kind, wave, result, people)
        except NotFound:
            log.info("question of %s: its delivery is no longer kept", key.id)
        return None

    async def _leave_out(self, tenant: str, body: str) -> None:
        """Leave out what was not sent yet to a person, or to a guardian about a child."""
        person, child, before = body.split("\n")
        (user,) = await self._directory.users.lookup(tenant, [person])
        if user is not None:
            channels = None if user.blocked or child else user.opt_out
            count = await self._deliveries.leave_out(tenant, user, channels, int(before), child)
            log.info("%s gets fewer messages from now on: left out of %d deliveries", person, count)

    async def _leave_out_contacts(self, tenant: str, body: str) -> None:
        """Leave out what was not sent yet to addresses that their people have no more."""
        before, *lines = body.split("\n")
        pairs = [line.partition("\t")[::2] for line in lines]
        contacts = [(person, *contact.partition(":")[::2]) for person, contact in pairs]
        lost: dict[str, set[str]] = {}
        for (person, channel, address), is_lost in zip(
            contacts, await self._current.have_lost(tenant, contacts, int(before)), strict=True
        ):
            for one in [person, *(await self._departed.inherited(tenant, person))] if is_lost else ():
                lost.setdefault(one, set()).add(f"{channel}:{address}")
        count = await self._deliveries.leave_out_contacts(tenant, lost, int(before)) if lost else 0
        log.info("%d people have lost contacts: left out of %d deliveries", len(lost), count)

    async def _notify(self, task: Task, body: str) -> None:
        suffix, _, number = body.rpartition(" ")
        key = HistoryKey.of(task.shard, suffix)
        if task.kind == PLACE:
            await self._notices.notify_place(key, task, int(number))
        else:
            await self._notices.notify_bot(key, task.tenant, int(number))

    async def _show_in_messages(self, task: Task, body: str) -> None:
        if task.kind == CHATS:
            await self._show_in_chats(HistoryKey.of(task.shard, body), task)
        else:
            await self._show_in_copies(task, body)

    async def _show_in_copies(self, task: Task, body: str) -> None:
        """Have the messages of other channels show the last answer. A change that is put twice is made once."""
        suffix, number, channel = body.rsplit(" ", 2)
        key = HistoryKey.of(task.shard, suffix)
        tubes = {tube.name for tube in await self._client.tubes.known()}
        for copy in await self._copies.of(key, int(number), channel):
            if calls_tube(copy.channel) not in tubes:
                continue
            calls = BotCalls(self._client, task.tenant, copy.channel)
            change = ButtonChange(copy.address, copy.message, copy.buttons)
            await calls.change_message(change, f"{key.id} {copy.version}", from_ms(task.claimed))
        await self._plan_chats(key, task)

    async def _plan_chats(self, key: HistoryKey, task: Task) -> None:
        """Have the messages of group chats show the totals, at most once in a while, and after the last answer."""
        if not await self._copies.of_chats(key):
            return
        turn = int(from_ms(task.claimed).timestamp()) // CHAT_PAUSE + 1
        due = datetime.fromtimestamp(turn * CHAT_PAUSE, UTC)
        later = NewTask(key.suffix, task.tenant, kind=CHATS, due=due)
        await self._client.queue.put_once(ANSWERS_TUBE, later, source="answers.chats", name=f"{key.id} {turn}")

    async def _show_in_chats(self, key: HistoryKey, task: Task) -> None:
        """Have the messages of group chats show the totals of this moment."""
        tubes = {tube.name for tube in await self._client.tubes.known()}
        for copy in await self._copies.of_chats(key):
            if calls_tube(copy.channel) in tubes:
                change = ButtonChange(copy.address, copy.message, copy.buttons)
                await BotCalls(self._client, task.tenant, copy.channel).change_message(
                    change, task.id, from_ms(task.claimed)
                )

    async def _show_buttons(self, key: HistoryKey, task: Task) -> None:
        """Have the messages of a question that was opened again show their buttons."""
        tubes, numbers = {tube.name for tube in await self._client.tubes.known()}, count()
        async for copy in self._copies.all(key):
            if calls_tube(copy.channel) in tubes:
                change = ButtonChange(copy.address, copy.message, copy.buttons)
                due = from_ms(task.claimed) + BUTTONS_PAUSE * next(numbers)
                await BotCalls(self._client, task.tenant, copy.channel).change_message(change, task.id, due)

    async def _text(self, tenant: str, event: Event) -> None:
        """Count an answer by text. Where a reply costs an SMS, only what is not simply counted has one."""
        channel, address = str(event["channel"]), str(event["user_id"])
        given, name = msgspec.convert(event[ANSWER_TO], TextMeaning), _name(tenant, event)
        answers: list[GivenAnswer] = []
        if not given.place:
            questions = await self._numbers.open_questions(tenant, channel, address)
            language = await self._language(tenant, event, *(one.question.locale for _, one in questions))
            await self._reply(tenant, event, which_question(questions, language))
            return
        if message := message_of(event):  # an edit of it is an answer, too
            text = str(event.get("event_text") or "").strip()
            place = tenant, channel, address, message
            await self._received.note_passed_on(*place, f"{ANSWER_OF}{given.place}", text)
        try:
            if given.is_wrong:
                await self._correct(tenant, event, given)
                return
            for option in (given.option, *given.more):
                one = replace(given, option=option)
                answers.append(await self._numbers.answer(tenant, channel, one, name))
            asked = await self._numbers.asked(given.place)
        except Refused as refusal:
            log.info("%s: the answer %s does not count: %s", channel, event["id"], refusal.code)
            language = await self._language(tenant, event, await self._language_of_question(given))
            await self._reply(tenant, event, refusal_text(refusal.code, language), given)
            return
        if said := [kept_text(one) for one in answers if is_alert(one) or given.is_free_to_reply]:
            about = await self._question_before_others(tenant, event, given, asked)
            await self._reply(tenant, event, "\n".join(dict.fromkeys([*said, *about])), given)
        if given.note and given.is_free_to_reply and not given.is_mailed:
            await self._pass_on(tenant, event, asked)

    async def _question_before_others(
        self, tenant: str, event: Event, given: TextMeaning, asked: AskedRecipient
    ) -> Sequence[str]:
        """Return a line with the question if a later message was sent to who has answered it without a quote: the words
        may have been meant for that.
        """
        if event.get("reply_message_id") or event.get("source") == MAIL or given.is_number:
            return []
        newest = await self._received.last(tenant, str(event["channel"]), str(event["user_id"]), 0)
        if newest is None or (newest.key, newest.number) == (asked.key, asked.recipient.number):
            return []
        return [about_text(asked.text, asked.question.locale)]

    async def _correct(self, tenant: str, event: Event, given: TextMeaning) -> None:
        """Reply what is wanted. Words go to the sender as well: they may be meant for it. Raises NotFound
        QUESTION_NOT_FOUND.
        """
        asked = await self._numbers.asked(given.place)
        await self._reply(tenant, event, wanted(asked.question), given)
        if any(map(str.isalpha, str(event.get("event_text") or ""))):
            await self._pass_on(tenant, event, asked)

    async def _pass_on(self, tenant: str, event: Event, asked: AskedRecipient) -> None:
        """Hand the words of an answer to the sender, as a reply; not those to a hidden question."""
        if asked.question.visible is AnswerVisibility.NAMED:
            words = {name: value for name, value in event.items() if name != ANSWER_TO}
            about = {NO_ANSWER_TO: [asked.key.id, asked.recipient.number]}
            await Events(self._client, tenant).put_reply({**words, **about})

    async def _reply(self, tenant: str, event: Event, text: str, about: TextMeaning | None = None) -> None:
        """Send a text back, once for each event, and not without end: a machine may answer. `about`: the answer of
        which it speaks: who replies to it replies to the question.
        """
        channel, address = str(event["channel"]), str(event["user_id"])
        if not await quotas.may_reply(self._store, tenant, channel, address):
            log.warning("%s: nothing is replied to %s: it has written too often today", channel, event["id"])
            return
        user = await self._directory.users.by_contact(tenant, channel, address)  # what it has answered goes with it
        recipient = Recipient(user.id if user else address, user.name if user else None, {channel: [address]})
        sender = Sender(NOTICES if event.get("source") == MAIL else "bot")  # a machine may answer a mail
        replies = await self._replies_to(about) if about else ""
        reply = NewDelivery(tenant, sender, text, [recipient], [channel], origin="bot", kind="reply", replies=replies)
        await self._deliveries.enqueue(reply, Repeat(f"answer:{_name(tenant, event)}", "answer", is_own=True))

    async def _language(self, tenant: str, event: Event, *of_text: str) -> str:
        """Return the language of the author of an event: the one that it has stated, else that `of_text` which it has
        answered, else that of its account.
        """
        user = await self._directory.users.by_contact(tenant, str(event["channel"]), str(event["user_id"]))
        return language_of(user.locale if user else None, *of_text, str(event.get("language_code") or ""))

    async def _language_of_question(self, about: TextMeaning) -> str:
        """Return the language in which a question is asked; "" if it is no longer kept."""
        with suppress(NotFound):
            return (await self._numbers.asked(about.place)).question.locale
        return ""

    async def _replies_to(self, about: TextMeaning) -> str:
        """Return where replies go to what is said about an answer; "" if its question is no longer kept."""
        try:
            asked = await self._numbers.asked(about.place)
        except NotFound:
            return ""
        return MessagePlace(asked.key, asked.recipient.number, about.parcel, about.contact).as_replies

    async def _close(self, key: HistoryKey, tenant: str) -> None:
        try:
            await self._questions.close(key, tenant, only_due=True)
        except NotFound:
            log.info("question of %s: its delivery is no longer kept", key.id)

    async def _press(self, tenant: str, event: Event) -> None:
        channel, token = str(event["channel"]), str(event["callback_data"])
        calls = BotCalls(self._client, tenant, channel) if event.get("callback_id") else None
        if ANSWER_RESULT in event:
            press = msgspec.convert(event[ANSWER_RESULT], AnonymousPress)
            if press.refused:
                text = refusal_text(press.refused, await self._language(tenant, event, press.locale))
            else:
                text = anonymous_text(press.result, press.locale)
            if calls:
                await calls.answer_press(event, text, alert=press.result != "answered")
            return
        account = str(event["user_id"]), token, _name(tenant, event), str(event.get("chat_id") or "")
        try:
            given, buttons = await self._answers.press(tenant, channel, *account)
        except Refused as refusal:
            log.info("%s: the press %s does not count: %s", channel, event["id"], refusal.code)
            if calls:
                of_button = await self._answers.language_of_button(tenant, token)
                text = refusal_text(refusal.code, await self._language(tenant, event, of_button))
                is_stranger = refusal.code == "ANSWER_STRANGER"
                await calls.answer_press(event, text, alert=True, names_bot=is_stranger)
            return
        if calls:
            await calls.answer_press(event, result_text(given), alert=is_alert(given) or buttons is None)
            if buttons is not None:
                await calls.change_buttons(event, buttons)


def _name(tenant: str, event: Event) -> str:
    """Return a short name of an event: the same for each repeat, and for no other event of any tenant."""
    return blake2b(identity(tenant, event).encode(errors="surrogatepass"), digest_size=9).hexdigest()
