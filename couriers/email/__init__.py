"""E-mail over SMTP (RFC 5321): the server, messages with a text and an HTML part, templates in files.

Guarantees: a line break in an address, a subject or a header is refused, so a caller cannot add headers. Texts and
subjects in any language arrive letter for letter. A message is transferred once: it is repeated, on another
connection, only if the server certainly does not have it.

Neighbours: `core.directory` mails codes, `couriers/email` delivers messages, `cli` opens both. No Redis here.
"""

from core.errors import Invalid
from couriers.email.mailer import (
    LinkCodeMailer,
    MailDeferred,
    Mailer,
    MailError,
    MailRefused,
    MailSilent,
    MailUnavailable,
    MailUnclear,
    Phase,
)
from couriers.email.message import (
    PLACE,
    MailFile,
    MailMessage,
    checked_address,
    html_of,
    html_of_marked,
    sender_address,
)
from couriers.email.server import Encryption, MailServer
from couriers.email.template import LOCALES, EmailTemplates

__all__ = [
    "LOCALES",
    "PLACE",
    "EmailTemplates",
    "Encryption",
    "Invalid",
    "LinkCodeMailer",
    "MailDeferred",
    "MailError",
    "MailFile",
    "MailMessage",
    "MailRefused",
    "MailServer",
    "MailSilent",
    "MailUnavailable",
    "MailUnclear",
    "Mailer",
    "Phase",
    "checked_address",
    "html_of",
    "html_of_marked",
    "sender_address",
]
