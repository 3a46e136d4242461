"""People in threads who use different providers, and every byte that is sent to each.

The providers are those of the sandbox. Every byte sent to one is kept: by a relay before it, by the mail server, and of
MTProto as the server has decrypted it. All that goes to one provider goes to one side.
"""

import asyncio
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from telethon.tl import types

from cli.commands.parts.bot import ReceivingBots
from cli.settings.settings import Configuration, courier_module, load
from core.deliveries.received import ReceivedMessages
from core.directory.linking import Linking
from core.model.delivery import NewDelivery, Sender
from core.model.people import User
from core.orders import Caller, Order
from core.orders.order import Addressee
from core.services import Services
from core.threads import ReplyWorker
from core.threads.mailed_replies import MailedReplies, MailResult
from core.uploads import Uploads
from couriers.email import LinkCodeMailer
from couriers.inbound import events_ingress
from sandbox.bot_api.state.parameters import Upload
from sandbox.max.uploads import UploadedFile
from sandbox.sandbox import Sandbox
from sandbox.state import ReceivedMessage
from sandbox.telegram.protocol import messages
from sandbox.telegram.state import identities
from sandbox.telegram.state.dialogs import StoredFile
from scenarios.execution.opening import ScenarioOptions
from tests.core.threads.test_document_metadata import TYPES, archive, ogg, pdf
from tests.core.threads.test_metadata import GREY
from tests.couriers.relay import Relay
from tests.couriers.telegram_provider import reads, signed_in
from tests.support.outbox import Outbox
from tests.support.receiving import answering, running
from tests.support.stack import QUICK, TENANT, Stack
from tests.support.waiting import until

URLS = {"telegram-bot": "ADA_BOT_API_URL", "vk": "ADA_VK_API_URL", "max": "ADA_MAX_API_URL", "sms": "ADA_SMS_URL"}
ADDRESSES = {
    "telegram-bot": "100071",
    "vk": "200072",
    "max": "300073",
    "sms": "+79995550074",
    "email": "masha.private@home.example",
    "telegram": "+79995550076",
}
ID_FOR_BOT = "100076"
"""A bot can find nobody by a telephone."""
MAILBOX = "reply@school.example"
Json = dict[str, Any]


@dataclass
class OneSide:
    """A person with one channel, and the provider of it."""

    sandbox: Sandbox
    channel: str
    requests: Callable[[], bytes]
    address: str
    has_buttons: bool = True
    newest: int = 0
    """The number of the last message that the person has written to VK's community, or to an account of Telegram."""

    @property
    def user(self) -> User:
        number = list(ADDRESSES).index(self.channel) + 1
        mail, contacts = f"{self.channel}@private.example", {self.channel: [self.address]}
        return User(number, f"Person {number}", mail, "student", "en", contacts, fields={"note": self.secrets[-1]})

    @property
    def secrets(self) -> Sequence[str]:
        """What the other side must not see."""
        account = self.channel.replace("-", "_")
        return self.address.strip("+"), f"account_{account}", f"{self.channel}@private.example", f"Profile {account}"

    def texts(self) -> list[str]:
        return [one.text for one in self._inbox()]

    def _inbox(self) -> Sequence[ReceivedMessage]:
        """The messages that have arrived; Telegram's have another id of the account than the telephone."""
        return self.sandbox.state.inbox(self.channel, None if self.channel == "telegram" else self.address)

    async def gets(self, part: str) -> str:
        """Wait until the person has got a text with this part; return the id by which it is quoted."""
        await until(lambda: any(part in text for text in self.texts()), within=30)
        reference = next(one.reference for one in reversed(self._inbox()) if part in one.text)
        return (
            str((self.sandbox.vk.people.shown(self.address, reference) or {})["number"])
            if self.channel == "vk"
            else reference
        )

    async def is_sent(self, part: bytes) -> None:
        """Wait until these bytes were sent to the provider."""
        await until(lambda: part in self.sent(), within=30)

    def write(self, text: str, quoted: str) -> None:
        """Reply to a message as the person."""
        match self.channel:
            case "telegram-bot":
                people, number = self.sandbox.bot_api.people, int(self.address)
                people.set_person(number, name=self.secrets[3], username=self.secrets[1])
                people.reply(number, int(quoted), text)
            case "vk":
                self.newest = self.sandbox.vk.people.write(self.address, text, reply_to=int(quoted))
            case "max":
                writer, name = int(self.address), self.secrets[3]
                self.sandbox.max.people.write(writer, text, name=name, reply_to=quoted)
            case "telegram":
                account = self._inbox()[-1].address
                (self.newest,) = self.sandbox.telegram.write(account, text, reply_to=int(quoted))

    def mail(self, text: str, quoted: str) -> bytes:
        """Return a mail that answers another one, with what a mail program adds."""
        own = (message_from_bytes(one) for one in self.sandbox.mail.contents)
        first = next(one for one in own if one["Message-ID"].strip("<>") == quoted)
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Cc"] = f"{self.secrets[3]} <{self.address}>", first["Reply-To"], self.secrets[2]
        mail["Message-ID"], mail["In-Reply-To"] = f"<{text.encode().hex()}@{self.secrets[1]}.example>", f"<{quoted}>"
        mail["Subject"], mail["X-Originating-IP"] = f"Re: {self.secrets[3]}", self.secrets[1]
        quoted_line = f"On Fri, Nov 27, 2026 at 12:00 PM {self.secrets[3]} <{self.address}> wrote:"
        mail.set_content(f"{text}\n\n{quoted_line}\n\n> hello\n\n-- \n{self.secrets[2]}")
        return mail.as_bytes()

    def send_photograph(self, text: str, quoted: str) -> None:
        """Reply with a photograph in which the camera has written who its owner is."""
        said = b"\xff\xfe" + (len(self.owner) + 2).to_bytes(2) + self.owner
        data, name = GREY[:2] + said + GREY[2:] + self.owner, f"{self.secrets[1]}.jpg"
        self.send_file("photo", Upload(name, "image/jpeg", data), text, quoted)

    def send_file(self, kind: str, file: Upload, text: str, quoted: str) -> None:
        """Reply with a file. `kind`: photo or document; voice only over MTProto."""
        match self.channel:
            case "telegram-bot":
                people = self.sandbox.bot_api.people
                people.send_file(int(self.address), kind, file, reply_to=int(quoted), caption=text)
            case "vk":
                vk, shown = self.sandbox.vk, "photo" if kind == "photo" else "doc"
                stored = vk.file_of_person(shown, file.name, file.content_type, file.content)
                vk.people.write(self.address, text, reply_to=int(quoted), files=[stored])
            case "max":
                shown = "image" if kind == "photo" else "file"
                uploaded = UploadedFile(shown, f"token-of-{file.name}", file.name, file.content_type, file.content)
                self.sandbox.max.people.send_file(int(self.address), uploaded, text, reply_to=quoted)
            case "telegram":
                stored_file, number = StoredFile(kind, file.name, file.content), int(quoted)
                (self.newest,) = self.sandbox.telegram.write(self.address, text, reply_to=number, file=stored_file)

    def forward(self, text: str) -> None:
        """Pass on, over MTProto, a message of the person itself."""
        header = types.MessageFwdHeader(datetime.now(UTC), from_name=self.owner.decode(), post_author=self.secrets[3])
        self.sandbox.telegram.write(self.address, text, fwd_from=header)

    def documents(self) -> Sequence[Upload]:
        """Return documents in which a program has written who has made them."""
        office = {**TYPES, "docProps/core.xml": self.owner, "word/comments.xml": b'<w:c w:author="%b"/>' % self.owner}
        drawing = b"<svg xmlns='http://www.w3.org/2000/svg'><metadata>%b</metadata><text>x</text></svg>" % self.owner
        voice = ogg(b"OpusHead\x01", b"OpusTags" + bytes(8) + self.owner)
        return [
            Upload("work.pdf", "application/pdf", pdf(author=self.owner)),
            Upload("work.docx", "application/zip", archive(office)),
            Upload("work.svg", "image/svg+xml", drawing),
            Upload("work.ogg", "audio/ogg", voice),
        ]

    @property
    def owner(self) -> bytes:
        return " ".join(self.secrets).encode()

    def corrects(self, text: str) -> None:
        """Edit the last message that the person has written: to any but MAX."""
        if self.channel == "vk":
            self.sandbox.vk.people.edit(self.address, self.newest, text)
            return
        if self.channel == "telegram":
            self.sandbox.telegram.edit(self.address, self.newest, text)
            return
        people, number = self.sandbox.bot_api.people, int(self.address)
        own = [one["id"] for one in people.shown(number)["messages"] if one["from"] == "person"]
        people.edit(number, own[-1], text)

    def press(self, message: str, label: str) -> None:
        match self.channel:
            case "telegram-bot":
                self.sandbox.bot_api.people.press(int(self.address), int(message), label)
            case "vk":
                self.sandbox.vk.people.press(self.address, int(message), label)
            case "max":
                self.sandbox.max.people.press(int(self.address), message, label)
            case "telegram":
                self.sandbox.telegram.press(self.address, int(message), label)

    def sent(self) -> bytes:
        """Return all that was sent to the provider: as it is, and without the escapes of URLs and JSON."""
        plain = self.requests()
        unescaped = re.sub(rb"\\u00([0-7][0-9a-f])", lambda code: bytes([int(code[1], 16)]), plain)
        return b"\n".join(
            [plain, unquote_to_bytes(plain.replace(b"+", b" ")).replace(b"\0", b""), unescaped, *_unpacked(plain)]
        )


@dataclass
class Neighbours:
    """People who know nothing of each other but names."""

    core: Services
    sides: dict[str, OneSide]

    async def order(self, sender: OneSide, to: OneSide, text: str) -> None:
        delivery = NewDelivery(TENANT, Sender(sender.user.id), text, (), [to.channel], replies="sender")
        await self.core.sending.send(Order(delivery, [Addressee(to.user.id)]), Caller(TENANT, is_admin=True))

    async def gets(self, side: OneSide, part: str) -> str:
        """Wait until a person has got a text that it may reply to; return the provider's id of the message."""
        message, received = await side.gets(part), ReceivedMessages(self.core.store)
        place = TENANT, side.channel, side.address
        by_text = side.channel in ("sms", "email")  # an SMS has no id that its receiver sees; a mail has an address
        await until(lambda: received.last(*place, 0) if by_text else received.quoted(*place, message))
        return message

    async def writes(self, side: OneSide, text: str, quoted: str) -> None:
        """Write as a person; an SMS quotes nothing, and is posted by the gateway."""
        core = self.core
        match side.channel:
            case "sms":
                ingress = events_ingress(core.store, core.client, TENANT)["sms"]
                await ingress.put({"id": str(datetime.now(UTC).timestamp()), "number": side.address, "text": text})
            case "email":
                mails = MailedReplies(core.store, core.client, core.directory, Uploads(core.store), "email", MAILBOX)
                assert await mails.take(side.mail(text, quoted)) == MailResult.TAKEN
            case _:
                side.write(text, quoted)

    async def shows_typed_addresses(self, teacher: OneSide, student: OneSide, number: int) -> None:
        """Check that an address typed on either side is shown to the other only after its author has confirmed it."""
        for here, there, quoted in ((student, teacher, f"At ten, {number}"), (teacher, student, f"Friday, {number}")):
            typed = f"{number}{here.secrets[0] if here.channel == 'sms' else here.secrets[2]}"
            await self.writes(here, f"Mine is +{typed}", await self.gets(here, quoted))
            asked = await here.gets(f"Your message contains contacts: +{typed}.")
            assert typed.encode() not in there.sent()
            if here.has_buttons:
                here.press(asked, "Send")
            else:
                await self.writes(here, "1", asked)
            await there.gets(typed)
            assert typed.encode() in there.sent()


async def opened(
    stack: Stack,
    sandbox: Sandbox,
    directory: Path,
    until_closed: AsyncExitStack,
    monkeypatch: pytest.MonkeyPatch,
    is_bot: bool,
) -> Neighbours:
    """Start what they use. `is_bot`: Ada signs in to Telegram over MTProto as a bot, otherwise as a person."""
    core, environment = Services.on(stack.store), dict(sandbox.environment)
    linking = Linking(stack.store, core.directory, LinkCodeMailer(Outbox()))
    sides, decrypted = {}, bytearray()
    monkeypatch.setattr(messages, "unpack", _keeping(messages.unpack, decrypted))
    if not is_bot:
        keys = int(environment["ADA_TELEGRAM_API_ID"]), environment["ADA_TELEGRAM_API_HASH"]
        environment["ADA_TELEGRAM_SESSION"] = await signed_in(sandbox.telegram, "+79990000077", *keys)
        del environment["ADA_TELEGRAM_BOT_TOKEN"]
    for channel, name in URLS.items():
        relay = Relay(urlsplit(environment[name]).port or 0)
        await relay.start()
        until_closed.push_async_callback(relay.stop)
        port = str(urlsplit(environment[name]).port)
        environment[name] = environment[name].replace(port, str(relay.port))
        if channel in ("vk", "max"):  # files go to an address that the provider names
            uploads = sandbox.vk.uploads if channel == "vk" else sandbox.max.uploads
            uploads.url = uploads.url.replace(port, str(relay.port))
        sent, has_buttons = (lambda relay=relay: bytes(relay.requests)), channel != "sms"
        sides[channel] = OneSide(sandbox, channel, sent, ADDRESSES[channel], has_buttons)
    mails = (lambda: _readable(sandbox.mail.contents)), ADDRESSES["email"]
    sides["email"] = OneSide(sandbox, "email", *mails, has_buttons=False)
    address = ID_FOR_BOT if is_bot else ADDRESSES["telegram"]
    sides["telegram"] = OneSide(sandbox, "telegram", lambda: bytes(decrypted), address, is_bot)
    if is_bot:
        _, name, _, profile = sides["telegram"].secrets
        monkeypatch.setattr(identities, "username_of", lambda _: name)
        monkeypatch.setattr(identities, "name_of", lambda _: (profile, profile))
    settings = {**environment, "ADA_BOT_TENANT": TENANT, "ADA_INBOUND_SMS_SECRET": "secret-of-the-gateway"}
    settings["ADA_WEBHOOK_ALLOW_PRIVATE"] = "true"
    configuration = load(settings, Path("/nowhere"))
    for channel, side in sides.items():
        await core.directory.users.create(TENANT, side.user)
        await sends(stack, configuration, channel, directory)
        if channel in URLS:
            await until_closed.enter_async_context(running(ReceivingBots(configuration, channel, core)))
    if is_bot:
        await reads(core.store)
    await until_closed.enter_async_context(answering(core, ScenarioOptions(TENANT, linking=linking)))
    replies = ReplyWorker(stack.store, core.client, core.directory, core.threads, core.relay)
    await replies.open()
    worker = replies.worker()
    working = asyncio.create_task(worker.run())
    until_closed.push_async_callback(asyncio.wait_for, working, 20)
    until_closed.callback(worker.stop)
    return Neighbours(core, sides)


async def sends(stack: Stack, configuration: Configuration, channel: str, directory: Path) -> None:
    """Send in a channel until the stack ends."""
    courier = await courier_module(channel).open(configuration.channel(channel), directory)
    await stack.courier(courier, replace(QUICK, tenant=TENANT, mailbox=MAILBOX))


def _keeping(unpack: Callable[[bytes], bytes], kept: bytearray) -> Callable[[bytes], bytes]:
    """Return the function that unpacks a decrypted request of MTProto, which keeps it."""

    def keep(body: bytes) -> bytes:
        kept.extend(unpacked := unpack(body))
        return unpacked

    return keep


def _readable(mails: Sequence[bytes]) -> bytes:
    """Return mails as they were sent, and their parts without base64."""
    parts = [part.get_payload(decode=True) for one in mails for part in message_from_bytes(one).walk()]
    return b"\n".join([*mails, *(one for one in parts if isinstance(one, bytes))])


def _unpacked(sent: bytes) -> Iterator[bytes]:
    """Emit the names and contents of all files in the ZIP files that were sent."""
    for found in re.finditer(rb"PK\x03\x04(?:(?!PK\x05\x06).)*PK\x05\x06.{18}", sent, re.DOTALL):
        with zipfile.ZipFile(io.BytesIO(found[0])) as unpacked:
            yield from (name.encode() + b"\n" + unpacked.read(name) for name in unpacked.namelist())
