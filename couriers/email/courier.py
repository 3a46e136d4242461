"""E-mail over SMTP. The table of the mail server's answers is in `outcomes.py`; `couriers.email` speaks SMTP.

A mail server does not recognise a repeat: after DATA a missing answer is `unknown`. A bounce comes later, as a mail; it
names the mail by its header Errors-To, or comes to the envelope sender (`core.threads.mailed_replies`).
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

from couriers.email import (
    LOCALES,
    PLACE,
    EmailTemplates,
    Invalid,
    Mailer,
    MailError,
    MailFile,
    MailMessage,
    MailServer,
    html_of_marked,
    sender_address,
)
from couriers.email.channel import CHANNEL
from couriers.email.outcomes import EmailLimits as MailLimits
from couriers.email.outcomes import outcome_of, remedy
from couriers.sending import (
    BEGINNING,
    NEVER,
    Attachment,
    Content,
    Feature,
    FileNotLoaded,
    Limits,
    Message,
    MessageFiles,
    Outcome,
    Reason,
    Rejected,
    Sent,
    SetupError,
    beginning_of,
    label_of,
    plain_text,
    say,
    spans,
)

_UNSUBSCRIBE = re.compile(r"(?:https?://|mailto:)[!-~]+")
_MESSAGE_ID = re.compile(r"[!-;=?-~]{1,200}@[!-;=?-~]{1,200}")
INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "not an e-mail address")


class Attached(NamedTuple):
    """`not_shown`: as in `couriers.sending.Sent`."""

    files: Sequence[MailFile] = ()
    not_shown: Sequence[str] = ()


class MailFiles:
    """One per courier. The files of the delivery used last are kept. `most_bytes`: of all files of one mail."""

    def __init__(self, files: MessageFiles) -> None:
        self._files = files
        self._last: tuple[str, asyncio.Task[Attached]] | None = None

    async def of(self, seed: str, attachments: Sequence[Attachment]) -> Attached:
        if not attachments:
            return Attached()
        if self._last is None or self._last[0] != seed:
            self._last = seed, asyncio.create_task(self._load(attachments))
        return await asyncio.shield(self._last[1])

    async def _load(self, attachments: Sequence[Attachment]) -> Attached:
        loaded: list[MailFile] = []
        missing: list[str] = []
        for attachment in attachments:
            try:
                loaded.append(await self._part(attachment, sum(len(file.data) for file in loaded)))
            except (FileNotLoaded, Invalid):
                missing.append(label_of(attachment))
        return Attached(loaded, missing)

    async def _part(self, attachment: Attachment, used: int) -> MailFile:
        file = await self._files.load(attachment)
        if used + len(file.data) > self._files.most_bytes:
            raise FileNotLoaded("the mail would be too large")
        return MailFile(file.name, file.media_type, file.data)


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_EMAIL_LOCALE and so on; three are common settings, because codes are mailed with them too.

    `first_pause` and `attempts`: a server that does greylisting accepts a message minutes after it refused it.
    """

    url: str = field(repr=False, metadata={"setting": "ADA_SMTP_URL"})
    ca: Path | None = field(default=None, metadata={"setting": "ADA_SMTP_CA"})
    templates: Path | None = field(default=None, metadata={"setting": "ADA_MAIL_TEMPLATES"})
    locale: str = "ru"  # of the template
    unsubscribe: str = (
        ""  # a URL or mailto:, may contain {address}; by default the recipient's page, or a mail to the sender
    )
    connections: int = 4  # to the server at once
    timeout: timedelta = timedelta(seconds=60)  # of each answer; after DATA the outcome is then unknown
    bounces: bool = False  # bounces are sent to an address of each mail; the server must accept it as the sender
    first_pause: timedelta = timedelta(minutes=1)
    attempts: int = 12
    most_files_mb: int = 10  # of all files of one mail; further ones are not shown
    allow_private: bool = field(default=False, metadata={"setting": "ADA_WEBHOOK_ALLOW_PRIVATE"})  # addresses of files

    def __post_init__(self) -> None:
        if self.connections < 1 or self.attempts < 1:
            raise SetupError("ADA_EMAIL_CONNECTIONS and ADA_EMAIL_ATTEMPTS must be at least 1")
        if self.locale not in LOCALES:
            raise SetupError(f"ADA_EMAIL_LOCALE must be one of {', '.join(LOCALES)}")
        if self.unsubscribe and not _UNSUBSCRIBE.fullmatch(self.unsubscribe):
            raise SetupError("ADA_EMAIL_UNSUBSCRIBE must be https://…, http://… or mailto:…, without spaces")
        MailServer.parse(self.url, self.ca)


class Email:
    """Implements `couriers.sending.Courier`. Safe for concurrent attempts."""

    channel = "email"
    batch = 1
    parcel = 100
    remembers = NEVER
    announces: Literal[True] = True
    links_preferences: Literal[True] = True
    shows = CHANNEL.shows

    def __init__(self, settings: Settings, mailer: Mailer, templates: EmailTemplates, files: MessageFiles) -> None:
        self._settings, self._mailer, self._templates = settings, mailer, templates
        self._files, self._mail_files, self._limits = files, MailFiles(files), MailLimits()
        self.limits = Limits(subject=self._filled("any@example.org", "", BEGINNING).subject, keyboard=CHANNEL.keyboard)
        self.account = mailer.server.account

    def as_text(self, content: Content) -> frozenset[Feature]:
        return CHANNEL.written_as_text(content)

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        content = message.content or Content()
        attached = await self._mail_files.of(message.seed, content.attachments)
        try:
            mail = self._mail(message, content, attached)
        except Invalid as error:
            return INVALID_ADDRESS if error.path == "email" else Rejected(Reason.CONTENT_REFUSED, error.detail)
        try:
            message_id = await self._mailer.send(mail, message.announce)
        except MailError as error:
            return self._limits.refused(message.address, error) or outcome_of(error)
        self._limits.accepted()
        return Sent(message_id, not_shown=tuple(attached.not_shown))

    def _mail(self, message: Message, content: Content, attached: Attached) -> MailMessage:
        """Return the mail of a message. Raises Invalid."""
        text = plain_text(message.text, content.parse_mode)
        subject = beginning_of(text) or next((file.name for file in attached.files), "")
        buttons = [one for row in content.inline for one in row]
        lines = [f"{one.text}: {one.url}" for one in buttons]
        plain, page = "\n".join([text, "", *lines] if lines else [text]), message.preferences_url
        footer = self._footer(page, message.language)
        mail = self._filled(message.address, plain, subject, footer)
        around = self._filled(message.address, PLACE, "", footer).text
        return replace(
            mail,
            html=html_of_marked(around, *spans(message.text, content.parse_mode), buttons),
            headers={
                **_unsubscribe_headers(self._unsubscribe(mail, page)),
                **_thread(content.reply_to),
                **_headers_against_loops(message),
            },
            bounce_to=message.bounce_to if self._settings.bounces else "",
            message_id=f"{message.random_id():016x}",
            files=attached.files,
        )

    def _footer(self, page: str, language: str) -> str:
        """Return the lines with the page on which the recipient chooses what it receives; "" if there is none."""
        return f"\n\n-- \n{say('mail_settings', language or self._settings.locale, url=page)}" if page else ""

    def _filled(self, address: str, text: str, beginning: str, footer: str = "") -> MailMessage:
        values = {"text": text, "beginning": beginning, "settings": footer}
        return self._templates.message("message", self._settings.locale, address, **values)

    def _unsubscribe(self, mail: MailMessage, page: str) -> Sequence[str]:
        """Return where a recipient unsubscribes, the best first: the page does not know people without an entry in
        the directory.
        """
        if self._settings.unsubscribe:
            return [self._settings.unsubscribe.replace("{address}", quote(mail.to, safe="@"))]
        sender = f"mailto:{sender_address(mail.sender or self._mailer.server.sender)}?subject=unsubscribe"
        return [page, sender] if page else [sender]

    async def close(self) -> None:
        await self._mailer.close()
        await self._files.close()


def _unsubscribe_headers(addresses: Sequence[str]) -> dict[str, str]:
    """Return the headers that offer to unsubscribe; at an address of https with one click (RFC 8058, 3.1)."""
    headers = {"List-Unsubscribe": ", ".join(f"<{one}>" for one in addresses)}
    is_https = addresses[0].lower().startswith("https://")
    return headers | {"List-Unsubscribe-Post": "List-Unsubscribe=One-Click"} if is_https else headers


def _headers_against_loops(message: Message) -> dict[str, str]:
    """Return where answers and bounces go, and the request that machines do not answer (RFC 3834; Exchange's header
    without NDR, because bounces are wanted).
    """
    headers = {
        "Reply-To": message.reply_to,
        "Errors-To": message.bounce_to,
        "Auto-Submitted": "auto-replied" if message.is_notice else "",
        "X-Auto-Response-Suppress": "DR, RN, NRN, OOF, AutoReply",
        "X-Loop": "ada",  # another installation of Ada takes no such mail for a reply
    }
    return {name: text for name, text in headers.items() if text}


def _thread(reply_to: str) -> dict[str, str]:
    """Return the headers that show a mail below the one it replies to."""
    return dict.fromkeys(("In-Reply-To", "References"), f"<{reply_to}>") if _MESSAGE_ID.fullmatch(reply_to) else {}


async def open(settings: Settings, directory: Path) -> Email:  # noqa: A001 - the interface's name
    """Sign in at the mail server and return the courier; `directory` is not used.

    Raises SetupError if a setting is wrong, or if the server cannot be reached or refuses the account.
    """
    server = MailServer.parse(settings.url, settings.ca)
    mailer = Mailer(server, settings.timeout, settings.connections)
    files = MessageFiles(settings.most_files_mb * 2**20, allow_private=settings.allow_private)
    courier = Email(settings, mailer, EmailTemplates(settings.templates), files)
    try:
        await mailer.check()
    except MailError as error:
        raise SetupError(remedy(error)) from None
    return courier
