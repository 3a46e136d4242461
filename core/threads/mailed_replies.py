"""Replies by mail: a mail to an address of `core.deliveries.received` becomes an event, as in a messenger.

The address decides to which delivery and person a mail belongs. If its author is another one, or is forged, the event
is `unverified`: it is passed on with a mark, and confirms nothing. Nothing of a mail is kept but its new words and its
files.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from msgspec import to_builtins

from core.answers import AnsweredMessage, AnswerNumbers
from core.answers.numbers import TextMeaning
from core.deliveries.delivery_reports import DeliveryReports
from core.deliveries.received import (
    Choices,
    MailedRecipient,
    ReceivedMessage,
    ReceivedMessages,
    ReplyAddresses,
    tokens_in,
)
from core.directory import Directory
from core.directory.preferences import OptOuts
from core.errors import Refused, StoreError
from core.model.contacts.addresses import canonical
from core.model.content import AttachmentType
from core.model.states import Reason, Status
from core.queue import QueueClient
from core.redis.store import Store
from core.threads.files import ReceivedFile, ThreadFiles
from core.threads.incoming import reply_name
from core.threads.limits import MOST_FILES
from core.threads.mail_reading import MailRead, read_mail
from core.threads.typed_addresses import typed_addresses
from core.updates.events import (
    ANSWER_TO,
    MAIL,
    MAX_ATTACHMENTS,
    SMALL_PICTURES,
    TYPED,
    Event,
    Events,
    answered,
    sends_reply,
)
from core.uploads import Uploads

log = logging.getLogger(__name__)

_MOST_CHARACTERS = 20_000
"""Of a mail that is passed on as a message; the words of a longer one are a file."""
_MOST_TYPED = 10
"""Addresses in such a file that its author is asked about."""


class MailResult(StrEnum):
    """The result of a mail. `AUTOMATIC`: a program wrote it; Ada neither passes it on nor replies to it.
    `BOUNCED`: it says that a mail did not arrive; the outcome of that is `failed`. `REFUSED`: it is no mail, or no
    address in it was made here.
    """

    TAKEN = "taken"
    REPEATED = "repeated"
    AUTOMATIC = "automatic"
    BOUNCED = "bounced"
    EMPTY = "empty"
    REFUSED = "refused"


class MailedReplies:
    """One per process. `channel`: whose messages are mails. `mailbox`: the address of the settings, such as
    reply@school.example. `count`: gets the result of each mail. Methods raise StoreError.
    """

    def __init__(
        self,
        store: Store,
        client: QueueClient,
        directory: Directory,
        uploads: Uploads,
        channel: str,
        mailbox: str,
        count: Callable[[MailResult], None] = lambda result: None,
    ) -> None:
        self._count = count
        self._channel = channel
        self._client = client
        self._directory = directory
        self._mailbox = mailbox
        self._addresses = ReplyAddresses(store, channel)
        self._received = ReceivedMessages(store)
        self._choices = Choices(store)
        self._numbers = AnswerNumbers(store)
        self._reports = DeliveryReports(store)
        self._files = ThreadFiles(store, client, uploads)

    async def take(self, raw: bytes, recipients: Sequence[str] = (), *, is_whole: bool = True) -> MailResult:
        """Hand a mail to the threads. `recipients`: of its envelope, if they are known. `is_whole`: False for the
        beginning of one that is too large, whose files are not passed on. Raises Invalid MAIL_MALFORMED,
        EVENT_TOO_LARGE; Forbidden MAIL_TOKEN_WRONG: then nothing is stored.
        """
        try:
            mail = await asyncio.to_thread(read_mail, raw)
            mail = replace(mail, recipients=(*recipients, *mail.recipients))
            if not is_whole:
                mail = replace(mail, files=tuple(one._replace(data=b"") for one in mail.files))
            long, mail = mail.text, _with_words_as_file(mail)
            result = await self._take(mail, "" if mail.text else long)
        except Refused as refusal:
            log.info("email: a mail was refused: %s", refusal.code)
            self._count(MailResult.REFUSED)
            raise
        self._count(result)
        return result

    async def put(self, raw: Mapping[str, Any]) -> bool:
        """Take a mail from a mailbox; a refusal is logged. Returns False for a mail that is no reply."""
        try:
            return await self.take(raw["mail"], is_whole=raw["is_whole"]) is not MailResult.AUTOMATIC
        except Refused:
            return False
        except StoreError:
            raise
        except Exception:  # one mail must not stop those behind it
            log.exception("email: a mail of the mailbox cannot be read, and is left there")
            self._count(MailResult.REFUSED)
            return False

    async def _take(self, mail: MailRead, words: str) -> MailResult:
        bounce = mail.bounce
        if bounce is None and (mail.is_automatic or tokens_in(self._mailbox, mail.bounce_to)):
            log.info("email: a mail of a machine was not passed on")
            return MailResult.AUTOMATIC
        tokens = tokens_in(self._mailbox, [*mail.recipients, *(bounce.addresses if bounce else ())])
        recipient = await self._addresses.recipient(tokens[0] if tokens else "")
        if bounce:
            unreachable = Status.FAILED, bounce.message_id, Reason.RECIPIENT_UNREACHABLE, bounce.words
            await self._reports.record_entry(recipient.entry, *unreachable)
            return MailResult.BOUNCED
        event = await self._event(mail, recipient)
        if typed := typed_addresses(words):
            event[TYPED] = typed[:_MOST_TYPED]
        if not sends_reply(event) and ANSWER_TO not in event:
            await self._store_files(recipient.tenant, event, mail.files)
        is_new = await Events(self._client, recipient.tenant).put_reply(event)
        if not mail.text and not mail.files:  # its author gets a notice
            return MailResult.EMPTY
        return MailResult.TAKEN if is_new else MailResult.REPEATED

    async def _is_of(self, recipient: MailedRecipient, mail: MailRead) -> bool:
        """Return whether the recipient of a delivery is the author of a mail, as far as a mail can show it."""
        user = await self._directory.users.by_contact(recipient.tenant, self._channel, recipient.address)
        own = [recipient.address, *(user.contacts.get(self._channel, ()) if user else ())]
        if user and user.email:
            own.append(user.email)
        authors = {canonical(self._channel, one) for one in mail.authors}
        return not mail.is_forged and len(authors) == 1 and authors <= {canonical(self._channel, one) for one in own}

    async def _event(self, mail: MailRead, recipient: MailedRecipient) -> dict[str, Any]:
        """Return the event of a mail, or the press that its text means."""
        address = recipient.address
        event: dict[str, Any] = {
            "id": blake2b(f"{address}\n{mail.name}".encode(errors="replace"), digest_size=16).hexdigest(),
            "channel": self._channel,
            "kind": "text",
            "source": MAIL,
            "user_id": address,
            "is_bot": False,
            "chat_id": address,
            "chat_type": "private",
            "event_text": mail.text,
            "event_date": datetime.now(UTC).isoformat(),
            "attachments": _attachments(mail.files),
            **({SMALL_PICTURES: mail.small_pictures} if mail.small_pictures else {}),
        }
        if not await self._is_of(recipient, mail):
            event["unverified"] = True
        elif answer := await self._answer(mail, recipient):
            return {**event, ANSWER_TO: to_builtins(answer)}
        elif sends_reply(meant := await answered(event, self._choices, recipient.tenant)):
            return meant
        return {**event, "reply_message_id": await self._reference(recipient)} if recipient.takes_replies else event

    async def _answer(self, mail: MailRead, recipient: MailedRecipient) -> TextMeaning | None:
        """Return what a mail answers of the question to which it replies; None for one with files that the threads pass
        on.
        """
        if not mail.text or (mail.files and recipient.takes_replies):
            return None
        opt_outs = OptOuts(self._directory, recipient.tenant)
        if await opt_outs.is_asked(self._channel, recipient.address, mail.text):  # no answer to a question for a text
            return None
        message = AnsweredMessage(self._channel, recipient.entry.parcel, recipient.entry.contact)
        return await self._numbers.read_mail(mail.text, recipient.key, recipient.number, message)

    async def _reference(self, recipient: MailedRecipient) -> str:
        """Return by what the threads find the message that a mail replies to; it is noted if it was forgotten."""
        tenant, key, number, address, *_ = recipient
        if known := await self._received.reference_in(tenant, self._channel, address, key, number):
            return known
        one = ReceivedMessage(f"mail.{number}.{key.ns}", key, number)
        await self._received.note(tenant, self._channel, [(address, one)])
        return one.reference

    async def _store_files(self, tenant: str, event: Event, files: Sequence[ReceivedFile]) -> None:
        """Store the first files, once, where the threads look for those that a bot has fetched."""
        name = reply_name(tenant, event)
        if files and await self._files.fetched(tenant, event, name) is None:
            stored = [await self._files.store(tenant, one, name) for one in files[:MOST_FILES] if one.data]
            await self._files.note(tenant, event, name, [one for one in stored if one])


def _with_words_as_file(mail: MailRead) -> MailRead:
    """Return a mail whose words, if they are too long for a message, are its first file."""
    if len(mail.text) <= _MOST_CHARACTERS:
        return mail
    whole = ReceivedFile(AttachmentType.DOCUMENT, "mail.txt", mail.text.encode(errors="replace"))
    return replace(mail, text="", files=(whole, *mail.files))


def _attachments(files: Sequence[ReceivedFile]) -> list[dict[str, str]]:
    named = enumerate(files[:MAX_ATTACHMENTS], 1)
    return [{"type": one.type.value, "file_id": f"part-{number}", "file_name": one.name} for number, one in named]
