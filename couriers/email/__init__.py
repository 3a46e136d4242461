"""E-mail over SMTP. The table of the mail server's answers is in `answers.py`; `core.mail` speaks SMTP.

A mail server does not recognise a repeat: after DATA a missing answer is `unknown`. A bounce that arrives later, as a
mail to the sender, is not read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from core.courier import NEVER, Feature, Message, Outcome, Reason, Rejected, Sent, SetupError
from core.mail import (
    LOCALES,
    Invalid,
    Mailer,
    MailError,
    MailMessage,
    MailServer,
    Templates,
    beginning_of,
    html_of,
    sender_address,
)
from couriers.email.answers import outcome_of, remedy

_UNSUBSCRIBE = re.compile(r"(?:https?://|mailto:)[!-~]+")
INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "not an e-mail address")


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_EMAIL_LOCALE and so on; three are common settings, because codes are mailed with them too.

    `first_pause` and `attempts`: a server that does greylisting accepts a message minutes after it refused it.
    """

    url: str = field(repr=False, metadata={"setting": "ADA_SMTP_URL"})
    ca: Path | None = field(default=None, metadata={"setting": "ADA_SMTP_CA"})
    templates: Path | None = field(default=None, metadata={"setting": "ADA_MAIL_TEMPLATES"})
    locale: str = "ru"  # of the template
    unsubscribe: str = ""  # a URL or mailto:, may contain {address}; by default a mail to the sender
    connections: int = 4  # to the server at once
    timeout: timedelta = timedelta(seconds=60)  # of each answer; after DATA the outcome is then unknown
    first_pause: timedelta = timedelta(minutes=1)
    attempts: int = 12

    def __post_init__(self) -> None:
        if self.connections < 1 or self.attempts < 1:
            raise SetupError("ADA_EMAIL_CONNECTIONS and ADA_EMAIL_ATTEMPTS must be at least 1")
        if self.locale not in LOCALES:
            raise SetupError(f"ADA_EMAIL_LOCALE must be one of {', '.join(LOCALES)}")
        if self.unsubscribe and not _UNSUBSCRIBE.fullmatch(self.unsubscribe):
            raise SetupError("ADA_EMAIL_UNSUBSCRIBE must be https://…, http://… or mailto:…, without spaces")


class Email:
    """Implements `core.courier.Courier`. Safe for concurrent attempts."""

    channel = "email"
    batch = 1
    parcel = 100
    remembers = NEVER
    shows = frozenset[Feature]()

    def __init__(self, settings: Settings, mailer: Mailer, templates: Templates) -> None:
        self._settings, self._mailer, self._templates = settings, mailer, templates
        self.account = mailer.server.account

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        try:
            mail = self._mail(message)
        except Invalid as error:
            return INVALID_ADDRESS if error.path == "email" else Rejected(Reason.CONTENT_REFUSED, error.detail)
        try:
            return Sent(await self._mailer.send(mail))
        except MailError as error:
            return outcome_of(error)

    def _mail(self, message: Message) -> MailMessage:
        """Raises Invalid."""
        values = {"text": message.text, "beginning": beginning_of(message.text)}
        mail = self._templates.message("message", self._settings.locale, message.address, **values)
        headers = {"List-Unsubscribe": f"<{self._unsubscribe(mail)}>"}
        return replace(mail, html=html_of(mail.text), headers=headers, message_id=f"{message.random_id():016x}")

    def _unsubscribe(self, mail: MailMessage) -> str:
        if self._settings.unsubscribe:
            return self._settings.unsubscribe.replace("{address}", quote(mail.to, safe="@"))
        return f"mailto:{sender_address(mail.sender or self._mailer.server.sender)}?subject=unsubscribe"

    async def close(self) -> None:
        await self._mailer.close()


async def open(settings: Settings, directory: Path) -> Email:  # noqa: A001 - the interface's name
    """Sign in at the mail server and return the courier; `directory` is not used.

    Raises SetupError if a setting is wrong, or if the server cannot be reached or refuses the account.
    """
    server = MailServer.parse(settings.url, settings.ca)
    mailer = Mailer(server, settings.timeout, settings.connections)
    courier = Email(settings, mailer, Templates(settings.templates))
    try:
        await mailer.check()
    except MailError as error:
        raise SetupError(remedy(error)) from None
    return courier
