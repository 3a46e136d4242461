"""Reads a mail as a mail program does. Pure."""

from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTPUTF8


@dataclass(frozen=True, slots=True)
class ReceivedMail:
    """What a recipient sees of a mail. `message_id` is without angle brackets."""

    subject: str
    text: str
    html: str
    message_id: str


def read_mail(content: bytes) -> ReceivedMail:
    """Read a mail as it was transferred."""
    mail = message_from_bytes(content, policy=SMTPUTF8)
    message_id = str(mail["Message-ID"] or "").strip().strip("<>")
    return ReceivedMail(str(mail["Subject"] or ""), _part(mail, "plain"), _part(mail, "html"), message_id)


def _part(mail: EmailMessage, kind: str) -> str:
    """Return the text of one kind, "" if there is none. The last line break of an only part belongs to the transfer."""
    part = mail.get_body((kind,))
    if part is None:
        return ""
    text = str(part.get_content()).replace("\r\n", "\n")
    is_only = part is mail and part["Content-Transfer-Encoding"] != "base64"
    return text.removesuffix("\n") if is_only else text
