"""Replies to mails as people's programs and machines write them: with what each quotes, a forged author, or the marks
of an automatic answer. Also what a scanner does: it opens every link. Pure, except `open_links`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTPUTF8
from email.utils import format_datetime, make_msgid, parseaddr
from html import escape
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession

from sandbox.mail.received_mail import headers_of, read_mail

_LINK = re.compile(r"https?://[^\s<>\"')]+")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_MONTHS = (
    *("января", "февраля", "марта", "апреля", "мая", "июня"),
    *("июля", "августа", "сентября", "октября", "ноября", "декабря"),
)
_DAYS = ("Понедельник", "Вторник", "Среда", "Четверг", "Пятница", "Суббота", "Воскресенье")
_SHORT_DAYS = ("пн", "вт", "ср", "чт", "пт", "сб", "вс")


@dataclass(frozen=True, slots=True)
class Quoted:
    """The mail that is replied to. `author`: as `Name <address>`, with the address for replies."""

    author: str
    subject: str
    text: str
    at: datetime


def _gmail(text: str, mail: Quoted) -> str:
    lines = "\n".join(f"> {line}".rstrip() for line in mail.text.splitlines())
    day, month = _SHORT_DAYS[mail.at.weekday()], _MONTHS[mail.at.month - 1][:4]
    return f"{text}\n\n{day}, {mail.at.day} {month}. {mail.at:%Y} г. в {mail.at:%H:%M}, {mail.author}:\n\n{lines}\n"


def _mail_ru(text: str, mail: Quoted) -> str:
    lines = "\n".join(f">{line}" for line in mail.text.splitlines())
    at = f"{_DAYS[mail.at.weekday()]}, {mail.at.day} {_MONTHS[mail.at.month - 1]} {mail.at:%Y, %H:%M} +03:00"
    return f"{text}\n \n--\nОтправлено из Почты Mail\n \n>{at} от {mail.author}:\n> \n{lines}\n"


def _outlook(text: str, mail: Quoted) -> str:
    at = f"{mail.at.day} {_MONTHS[mail.at.month - 1]} {mail.at:%Y г. %H:%M}"
    head = f"<b>От:</b> {escape(mail.author)}<br><b>Отправлено:</b> {at}<br><b>Тема:</b> {escape(mail.subject)}"
    quoted = "".join(f"<div>{escape(line)}</div>" for line in mail.text.splitlines())
    return (
        f'<html><body><div>{_html(text)}</div>\n<hr tabindex="-1">\n<div id="divRplyFwdMsg">{head}</div>\n{quoted}'
        "</body></html>"
    )


def _yandex(text: str, mail: Quoted) -> str:
    quoted = "".join(f"<p>{escape(line)}</p>" for line in mail.text.splitlines())
    at = f"{mail.at:%d.%m.%Y, %H:%M}, {escape(mail.author)}:"
    return f"<div>{_html(text)}</div><div>\xa0</div><div>{at}</div><blockquote>{quoted}</blockquote>"


def _html(text: str) -> str:
    return escape(text).replace("\n", "<br>")


CLIENTS: Mapping[str, tuple[str, Callable[[str, Quoted], str]]] = {
    "gmail": ("plain", _gmail),
    "mail.ru": ("plain", _mail_ru),
    "outlook": ("html", _outlook),
    "yandex": ("html", _yandex),
    "none": ("plain", lambda text, mail: text),
}
"""Name of a mail program → the type of its text, and the text with what it quotes."""


def reply_to(content: bytes, text: str, client: str, sender: str, at: datetime, *, is_automatic: bool) -> bytes:
    """Return a reply to a mail as it is transferred. `content`: the mail; `sender`: who writes it, "" for its
    recipient; `is_automatic`: a machine answers, as one does for people who are away.
    """
    headers = {name.lower(): value for name, value in headers_of(content)}
    found = read_mail(content)
    target, (name, _) = headers.get("reply-to") or headers["from"], parseaddr(headers["from"])
    author = f"{name or 'School'} <{parseaddr(target)[1]}>"
    kind, quoting = CLIENTS[client]
    mail = EmailMessage(policy=SMTPUTF8)
    mail["From"], mail["To"] = sender or headers["to"], target
    mail["Subject"] = f"{'Автоответ' if is_automatic else 'Re'}: {found.subject}"
    mail["Date"], mail["Message-ID"] = format_datetime(at), make_msgid(domain="sandbox.example")
    mail["In-Reply-To"] = mail["References"] = f"<{found.message_id}>"
    if is_automatic:
        mail["Auto-Submitted"] = "auto-replied"
    mail.set_content(quoting(text, Quoted(author, found.subject, found.text, at)), subtype=kind)
    return bytes(mail)


async def open_links(content: bytes) -> Mapping[str, int]:
    """Open each link of a mail by HEAD and GET, as scanners do, if it leads to this machine; return link → status of
    GET, 0 for one that was not opened or has no answer.
    """
    found = read_mail(content)
    links = dict.fromkeys(_LINK.findall(f"{found.text}\n{found.html}".replace("&amp;", "&")), 0)
    async with ClientSession() as session:
        for link in links:
            if urlsplit(link).hostname in _LOOPBACK:
                try:
                    await session.head(link)
                    links[link] = (await session.get(link)).status
                except (ClientError, TimeoutError):
                    continue
    return links
