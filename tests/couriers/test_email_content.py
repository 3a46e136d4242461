"""Marks, files and threads of mails, as a mail program reads them from the sandbox's server."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from couriers.sending import Attachment, AttachmentType, Content, Courier, Message, ParseMode, Sent
from tests.couriers.contract import message
from tests.couriers.file_server import PICTURE, FileServer, file_server
from tests.couriers.test_email import MailProvider, last_mail, provider

__all__ = ["provider"]

PERSON = "student1@example.org"
PHOTO, DOCUMENT = AttachmentType.PHOTO, AttachmentType.DOCUMENT


@pytest.fixture
async def server() -> AsyncIterator[FileServer]:
    async with file_server() as started:
        yield started


def with_content(text: str, seed: str = "delivery", **content: Any) -> Message:
    return replace(message(PERSON, text, seed), content=Content(**content))


async def send(courier: Courier, wanted: Message) -> Sent:
    (outcome,) = await courier.attempt([wanted])
    assert isinstance(outcome, Sent)
    return outcome


def parts(provider: MailProvider) -> dict[str, str]:
    """The text and the body of the HTML part of the newest mail."""
    mail = last_mail(provider)
    found = {}
    for kind in ("plain", "html"):
        part = mail.get_body((kind,))
        assert part is not None
        found[kind] = str(part.get_content()).replace("\r\n", "\n").strip()
    return found


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (ParseMode.HTML, '<b>Меню <i>дня</i></b> 🍲 &lt;\n<a href="https://x.org/?a=1&amp;b=2">здесь</a>'),
        (ParseMode.MARKDOWN_V2, "*Меню _дня_* 🍲 <\n[здесь](https://x.org/?a=1&b=2)"),
    ],
)
async def test_marks_are_shown_in_the_html_part_and_not_in_the_text(
    provider: MailProvider, mode: ParseMode, text: str
) -> None:
    await send(await provider.open(), with_content(text, parse_mode=mode))
    found = parts(provider)
    assert "Меню дня 🍲 <\nздесь (https://x.org/?a=1&b=2)" in found["plain"]
    link = '<a href="https://x.org/?a=1&amp;b=2">здесь</a>'
    assert f"<b>Меню <i>дня</i></b> 🍲 &lt;<br>\n{link}" in found["html"]
    assert last_mail(provider)["Subject"] == "Меню дня 🍲 <"


async def test_marks_cannot_add_markup_of_their_own(provider: MailProvider) -> None:
    text = '<b onclick="x()">&lt;script&gt;</b><a href="javascript:x()">y</a> https://x.org \ue000'
    await send(await provider.open(), with_content(text, parse_mode=ParseMode.HTML))
    html = parts(provider)["html"]
    assert '<b>&lt;script&gt;</b>y <a href="https://x.org">https://x.org</a>' in html
    assert "onclick" not in html
    assert "javascript" not in html


async def test_files_are_parts_of_the_mail_and_read_once_for_all_recipients(
    provider: MailProvider, server: FileServer, tmp_path: Path
) -> None:
    provider.changes = {"allow_private": True, "most_files_mb": 1}
    (tmp_path / "список.csv").write_bytes("а,б\r\n".encode())
    files = [
        Attachment(PHOTO, url=f"{server.url}/menu.png"),
        Attachment(DOCUMENT, path=str(tmp_path / "список.csv")),
        Attachment(DOCUMENT, url=f"{server.url}/big"),
    ]
    courier = await provider.open()
    wanted = with_content("", attachments=files)
    for sent in await courier.attempt([wanted, replace(wanted, address="student2@example.org")]):
        assert isinstance(sent, Sent)
        assert list(sent.not_shown) == ["document big"]
    attached = [(one.get_filename(), one.get_content_type()) for one in last_mail(provider).iter_attachments()]
    assert attached == [("menu.png", "image/png"), ("список.csv", "text/csv")]
    contents = [one.get_payload(decode=True) for one in last_mail(provider).iter_attachments()]
    assert contents == [PICTURE, "а,б\r\n".encode()]
    assert (server.paths, last_mail(provider)["Subject"]) == (["/menu.png", "/big"], "menu.png")


async def test_all_files_of_a_mail_together_have_a_limit(provider: MailProvider, tmp_path: Path) -> None:
    provider.changes = {"most_files_mb": 1}
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(bytes(600_000))
    files = [Attachment(DOCUMENT, path=str(tmp_path / name)) for name in ("one", "two")]
    sent = await send(await provider.open(), with_content("Меню", attachments=files))
    assert list(sent.not_shown) == ["document two"]
    assert [one.get_filename() for one in last_mail(provider).iter_attachments()] == ["one"]


async def test_a_reply_is_in_the_thread_of_the_mail_it_replies_to(provider: MailProvider) -> None:
    courier = await provider.open()
    first = await send(courier, with_content("Меню", reply_to="12"))
    assert last_mail(provider)["In-Reply-To"] is None, "12 is no mail"
    await send(courier, with_content("Суп", "second", reply_to=first.reference))
    assert last_mail(provider)["In-Reply-To"] == last_mail(provider)["References"] == f"<{first.reference}>"
