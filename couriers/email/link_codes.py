"""Mails the codes that link a contact to a person (`core.directory.linking`) or sign it in (`core.sessions`)."""

from datetime import timedelta
from typing import Protocol

from core.directory.linking import NotMailed
from core.model.people import User
from couriers.email.errors import MailError, MailUnclear
from couriers.email.message import MailMessage
from couriers.email.template import EmailTemplates

_CHANNEL_TITLES = {"telegram": "Telegram", "telegram-bot": "Telegram", "vk": "VK", "max": "MAX", "sms": "SMS"}
"""As people know them; a channel of another system has its own name."""


class EmailSender(Protocol):
    """Transfers a mail: `couriers.email.Mailer`."""

    async def send(self, message: MailMessage) -> object: ...


class LinkCodeMailer:
    """Mails a code in the person's language, by the template `link-code`."""

    def __init__(self, mailer: EmailSender, templates: EmailTemplates | None = None) -> None:
        self._mailer = mailer
        self._templates = templates or EmailTemplates()

    async def send_code(self, to: User, channel: str, code: str, lifetime: timedelta) -> None:
        """Mail the code. A mail that may have arrived counts as sent: its reader can use the code.

        Raises NotMailed MAIL_REFUSED or MAIL_UNAVAILABLE.
        """
        title = _CHANNEL_TITLES.get(channel, channel)
        values = {"code": code, "minutes": _minutes(lifetime), "channel": title}
        await self._send(self._templates.message("link-code", to.locale, to.email or "", **values))

    async def send_sign_in_code(self, to: User, code: str, lifetime: timedelta) -> None:
        """Mail the code that signs the person in, by the template `sign-in-code`. Raises as `send_code`."""
        values = {"code": code, "minutes": _minutes(lifetime)}
        await self._send(self._templates.message("sign-in-code", to.locale, to.email or "", **values))

    async def _send(self, message: MailMessage) -> None:
        try:
            await self._mailer.send(message)
        except MailUnclear:
            return
        except MailError as fault:
            refusal = "MAIL_REFUSED" if fault.code == "MAIL_REFUSED" else "MAIL_UNAVAILABLE"
            raise NotMailed(refusal, "The code could not be mailed. Nothing was linked.") from fault


def _minutes(lifetime: timedelta) -> str:
    return str(-(-lifetime // timedelta(minutes=1)))
