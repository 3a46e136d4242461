"""Reads an event as what somebody has written to a thread: who, what it quotes, and the delivery that it belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b

import msgspec
from msgspec import Struct

from core.answers import AnswerNumbers
from core.deliveries.histories.encoding import PAGE, load_recipients
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.received import ReceivedMessage, ReceivedMessages
from core.directory import Directory
from core.directory.offices import is_read
from core.model.delivery import REPLIES_OFF, Sender
from core.model.history_key import HistoryKey, Id
from core.model.people import User
from core.model.question import AnswerVisibility, load_question
from core.queue import Attempt, QueueClient
from core.redis.store import Store
from core.sentence import language_of, language_of_text
from core.threads.files import ThreadFile
from core.threads.threads import ReplyRoute
from core.updates.events import (
    CONFIRMED,
    MAIL,
    NO_ANSWER_TO,
    REPLIES_TUBE,
    SMALL_PICTURES,
    Event,
    Events,
    identity,
    is_for_topic,
)
from core.updates.ingress import Gathering, merge_forwards

_WEEK_MS = timedelta(days=7) // timedelta(milliseconds=1)


class RepliedDelivery(Struct, frozen=True):
    """Facts of its delivery that a reply needs. `recipient`, `name`: of the author of the reply. `hides_answers`: its
    question is hidden or anonymous.
    """

    key: HistoryKey
    replies: str
    text: str
    sender: Sender
    recipient: Id
    name: str | None
    hides_answers: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A message as a person has written it. `event`: names it, without spaces; a repeat has the same one. `files`: how
    many files cannot be passed on; `attachments`: those that can. `next_file`: when its author may send another one,
    None for now. `corrects`: it is an edit of an earlier message. `is_unverified`: somebody else may have written it.
    `is_mailed`: it came by mail, so a machine may answer what Ada says about it. `small_pictures`: how many of a
    signature were left out.
    """

    event: str
    text: str
    files: int = 0
    corrects: bool = False
    attachments: Sequence[ThreadFile] = ()
    next_file: timedelta | None = None
    is_unverified: bool = False
    is_mailed: bool = False
    small_pictures: int = 0

    @property
    def digest(self) -> str:
        words = [self.text, *(one.id for one in self.attachments)]
        return blake2b("\0".join(words).encode(errors="replace"), digest_size=16).hexdigest()


class Incoming(Struct, frozen=True):
    """A message that arrived over `way`. `author`: None if the directory does not know it. `source`: the message
    that it quotes or whose question it does not answer, else the last one of the week. `confirmed`: the questions about
    it that its author has answered by sending it. `attempt`: of its task. `language`: in which Ada speaks to the
    author.
    """

    tenant: str
    event: Event
    written: Written
    way: ReplyRoute
    author: User | None
    source: ReceivedMessage | None
    is_quoted: bool
    confirmed: Sequence[str]
    attempt: Attempt
    language: str

    @property
    def is_in_topic(self) -> bool:
        return bool(self.event.get("topic_id"))

    @property
    def is_answer(self) -> bool:
        """Return whether a reader may have it sent to the person of the thread that it quotes."""
        return self.is_quoted and not self.written.is_unverified


class IncomingReplies:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store, directory: Directory) -> None:
        self._store = store
        self._directory = directory
        self._received = ReceivedMessages(store)
        self._reader = HistoryReader(store)
        self._numbers = AnswerNumbers(store)

    async def read(self, tenant: str, event: Event, attempt: Attempt) -> Incoming:
        way, reference = way_of(event), str(event.get("reply_message_id") or "")
        if is_for_topic(event):
            place = way.channel, str(event["chat_id"]), str(event["topic_id"])
            quoted = await self._received.last_in_topic(tenant, *place)
        else:
            quoted = asked_in(event) or (await self._received.quoted(tenant, *way, reference) if reference else None)
        source = quoted or await self._received.last(tenant, *way, since=a_week_before(self._store))
        author = await self.author(tenant, event)
        about = written_of(tenant, event), way, author, source, quoted is not None, event.get(CONFIRMED) or ()
        return Incoming(tenant, event, *about, attempt, await self._language(event, author, source))

    async def language(self, tenant: str, event: Event, author: User | None) -> str:
        """Return the language in which Ada speaks to the author of an event that may quote nothing."""
        source = await self._received.last(tenant, *way_of(event), since=a_week_before(self._store))
        return await self._language(event, author, source)

    async def _language(self, event: Event, author: User | None, source: ReceivedMessage | None) -> str:
        """Return the language that the author has stated, else that of the text that it replies to, of its own words,
        or of its account.
        """
        stated = author.locale if author else None
        fields = await self._reader.read_fields(source.key, ["text"]) if source and not stated else {}
        of_texts = [language_of_text(text or "") for text in (*fields.values(), _text_of(event))]
        return language_of(stated, *of_texts, str(event.get("language_code") or ""))

    async def may_answer_hidden(self, reply: Incoming) -> bool:
        """Return whether words that quote nothing may be meant for an open question of the last week that is hidden or
        anonymous, whatever else was sent after it.
        """
        if reply.is_quoted or reply.is_in_topic:
            return False
        received = await self._received.received_since(reply.tenant, *reply.way, a_week_before(self._store))
        return await self._numbers.may_answer_hidden(reply.written.text, [(one.key, one.number) for one in received])

    async def author(self, tenant: str, event: Event) -> User | None:
        """Return who has written; None if the directory does not know it. A reader without another contact gets mails
        at its address of the directory (`core.threads.readers`).
        """
        users, way = self._directory.users, way_of(event)
        found = await users.by_contact(tenant, *way)
        return await users.by_email(tenant, way.address) if found is None and event.get("source") == MAIL else found

    async def delivery(self, tenant: str, received: ReceivedMessage) -> RepliedDelivery | None:
        """Return the delivery of a message; None if it is no longer kept."""
        page = received.number // PAGE
        names = ("tenant", "sender", "text", "replies", "answer", f"people:{page}")
        fields = await self._reader.read_fields(received.key, names)
        people = load_recipients(fields[f"people:{page}"] or "[]", page)
        if fields["tenant"] != tenant or received.number % PAGE >= len(people):
            return None
        one = people[received.number % PAGE]
        sender = msgspec.json.decode(fields["sender"] or "{}", type=Sender)
        replies, question = fields["replies"] or REPLIES_OFF, load_question(fields["answer"])
        hides = question is not None and question.visible is not AnswerVisibility.NAMED
        return RepliedDelivery(received.key, replies, fields["text"] or "", sender, one.id, one.name, hides)


class UnquotedReplies:
    """Takes what a person writes to a bot that has no answer to it. One per tenant. `office`: as of `ReplyWorker`."""

    def __init__(self, store: Store, client: QueueClient, directory: Directory, tenant: str, office: str = "") -> None:
        self._store = store
        self._directory = directory
        self._tenant = tenant
        self._office = office
        self._received = ReceivedMessages(store)
        self._events = Events(client, tenant)
        self._forwards = forwards(store, client, tenant)

    async def take(self, event: Event) -> bool:
        """Return whether it belongs to a delivery of the last week, or there is an office; then it goes to its thread,
        messages that are forwarded at once as one. Raises StoreError.
        """
        place = self._tenant, str(event["channel"]), str(event["user_id"])
        belongs = await self._received.last(*place, since=a_week_before(self._store)) is not None
        if not belongs and not (self._office and await is_read(self._directory, self._tenant, self._office)):
            return False
        reply = {"source": self._tenant, "kind": "text", **event}
        if event.get("is_forward"):
            await self._forwards.add(self._tenant, f"forwards.{event['channel']}.{event['user_id']}", reply)
        else:
            await self._events.put_reply(reply)
        return True


def forwards(store: Store, client: QueueClient, tenant: str) -> Gathering:
    """Return what makes one reply of the messages that a person forwards at once."""
    return Gathering(store, client, tenant, Events(client, tenant), merge_forwards, tube=REPLIES_TUBE)


def asked_in(event: Event) -> ReceivedMessage | None:
    """Return the message whose question an event was found not to answer."""
    about = event.get(NO_ANSWER_TO)
    return ReceivedMessage("", HistoryKey.parse(about[0]), about[1]) if about else None


def a_week_before(store: Store) -> int:
    """Return the ms of the store's clock a week ago."""
    return store.now_ms() - _WEEK_MS


def guest_id(way: ReplyRoute) -> str:
    """Return the id of an account of which nothing else is known."""
    return f"guest-{blake2b(f'{way.channel}:{way.address}'.encode(), digest_size=6).hexdigest()}"


def way_of(event: Event) -> ReplyRoute:
    return ReplyRoute(str(event["channel"]), str(event["user_id"]))


def reply_name(tenant: str, event: Event) -> str:
    """Return the name of the reply that an event is."""
    return blake2b(identity(tenant, event).encode(errors="surrogatepass"), digest_size=9).hexdigest()


def written_of(tenant: str, event: Event) -> Written:
    is_edit, text = event.get("kind") == "edited", _text_of(event)
    files = 0 if is_edit else len(event.get("attachments") or ()) + int(event.get("forward_files") or 0)
    is_unverified, is_mailed = bool(event.get("unverified")), event.get("source") == MAIL
    name = reply_name(tenant, event)
    small = int(event.get(SMALL_PICTURES) or 0)
    return Written(name, text, files, is_edit, is_unverified=is_unverified, is_mailed=is_mailed, small_pictures=small)


def _text_of(event: Event) -> str:
    """Return the words of a message, with those that are forwarded in it behind its own."""
    texts = (str(event.get(name) or "").strip() for name in ("event_text", "forward_text"))
    return "\n\n".join(filter(None, texts))
