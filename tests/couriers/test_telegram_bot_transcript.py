"""What the courier sends to the Bot API for every content, and the outcome of each answer, as in the transcript."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from couriers.sending import Attachment, AttachmentType, Button, Content, Courier, ParseMode
from couriers.telegram_bot import courier as telegram_bot
from tests.couriers.bot_api_relay import SILENCE, Relay
from tests.couriers.bot_api_transcript import ANSWERS, compare, relay, shown
from tests.couriers.contract import files, message

__all__ = ["relay"]

ANNA, GROUP = "100002", "-1000000000123"
MENU = ((Button("Да", "yes"), Button("Сайт", url="https://example.org")),)
HTML = ParseMode.HTML


@pytest.fixture
async def courier(relay: Relay, tmp_path: Path) -> AsyncIterator[Courier]:
    settings = telegram_bot.Settings(relay.server.token, relay.url, timeout=timedelta(seconds=1.5))
    courier = await telegram_bot.open(settings, tmp_path / "courier")
    relay.received()
    yield courier
    await courier.close()


def contents(folder: Path) -> dict[str, tuple[str, str, Content | None]]:
    """Address, text and content by the name of the case."""
    one = {kind: files(folder, f"{kind}1.bin")[0] for kind in AttachmentType}
    photos, documents = (
        files(folder, "photo2.jpg", "video3.mp4", "photo4.jpg"),
        files(folder, "document5.pdf", "document6.pdf"),
    )
    photo = [one[AttachmentType.PHOTO]]
    named = [
        Attachment(AttachmentType.PHOTO, url="https://example.org/a.jpg"),
        Attachment(AttachmentType.VOICE, provider_id="AwAC1"),
    ]
    odd = folder / 'отчёт "1";.pdf'
    odd.write_bytes(b"%PDF")
    large = folder / "large.bin"
    large.write_bytes(b"0123456789" * 300_000)
    caption = "<b>Меню</b> на среду"
    return {
        "text": (ANNA, "quotes \" ' « »\n[1] {x}  👩‍👩‍👧 \u2028 end", None),
        "JSON as text": (ANNA, "[1, 2]", None),
        "long text": (ANNA, "слово " * 1000, None),
        "to a group": (GROUP, "hello", None),
        "to a name": ("@club", "hello", None),
        "malformed address": ("somebody", "hello", None),
        "plain content": (ANNA, "<b>x</b>", Content()),
        "HTML": (ANNA, caption, Content(HTML)),
        "Markdown": (ANNA, "*x*", Content(ParseMode.MARKDOWN_V2)),
        "broken marks": (ANNA, "<b>x", Content(HTML)),
        "long with marks": (ANNA, "<b>" + "x" * 5000 + "</b>", Content(HTML)),
        "buttons": (ANNA, "?", Content(inline=MENU)),
        "reply keyboard": (ANNA, "?", Content(reply=(("Да", "Нет"), (), ("Номер",)), request_contact=("Номер",))),
        "contact in a group": (GROUP, "?", Content(reply=(("Номер",),), request_contact=("Номер",))),
        "keyboard removed": (ANNA, "?", Content(reply=())),
        "two keyboards": (ANNA, "?", Content(inline=MENU, reply=(("Да",),))),
        "reply": (ANNA, "yes", Content(reply_to="1,2")),
        "reply to nothing": (ANNA, "yes", Content(reply_to="none")),
        "empty": (ANNA, " ", Content()),
        **{f"{kind}": (ANNA, caption, Content(HTML, attachments=[file])) for kind, file in one.items()},
        "photo with buttons": (ANNA, caption, Content(HTML, MENU, attachments=photo, reply_to="1")),
        "long caption": (ANNA, "x" * 1500, Content(attachments=photo)),
        "no caption": (ANNA, "", Content(attachments=photo)),
        "odd file name": (ANNA, "", Content(attachments=[Attachment(AttachmentType.DOCUMENT, str(odd))])),
        "large file": (ANNA, "", Content(attachments=[Attachment(AttachmentType.DOCUMENT, str(large))])),
        "named files": (ANNA, "?", Content(attachments=named)),
        "no such file": (ANNA, "?", Content(attachments=[Attachment(AttachmentType.PHOTO, "/nowhere/a.jpg")])),
        "group of files": (ANNA, caption, Content(HTML, attachments=photos, reply_to="1")),
        "group and documents": (ANNA, caption, Content(attachments=[*photos, *documents, named[0]])),
        "group with buttons": (ANNA, caption, Content(HTML, MENU, attachments=photos)),
        "group with buttons, no text": (ANNA, "", Content(inline=MENU, attachments=photos)),
        "edit": (ANNA, "new <i>text</i>", Content(HTML, MENU, edit="1,2")),
        "edit without change": (ANNA, "new <i>text</i>", Content(HTML, MENU, edit="1,2")),
        "edit of buttons": (ANNA, "", Content(inline=MENU, edit="3")),
        "edit of buttons away": (ANNA, "", Content(edit="3")),
        "edit of a file": (ANNA, caption, Content(HTML, MENU, attachments=documents[:1], edit="PHOTO")),
        "edit of a caption": (ANNA, "new", Content(inline=MENU, edit="PHOTO")),
        "edit of nothing": (ANNA, "new", Content(edit="999")),
        "edit of no number": (ANNA, "new", Content(edit="none")),
        "edit into several files": (ANNA, "new", Content(attachments=photos, edit="1")),
        "removal": (ANNA, "new", Content(remove="1,2")),
        "removal of nothing": (ANNA, "new", Content(remove="999")),
        "removal of no number": (ANNA, "new", Content(remove="none")),
    }  # fmt: skip


async def test_the_courier_sends_and_edits_every_content(
    relay: Relay, courier: Courier, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    played, photo = {}, ""
    for name, (address, text, content) in contents(tmp_path).items():
        edited = structs.replace(content, edit=photo) if content and content.edit == "PHOTO" else content
        (outcome,) = await courier.attempt([replace(message(address, text), content=edited)])
        photo = outcome.reference if name == "photo" else photo  # type: ignore[union-attr]
        played[name] = [relay.received(), repr(outcome)]
    compare("contents", played, relay.server.token, caplog)


async def test_what_becomes_of_a_message_after_each_answer(
    relay: Relay, courier: Courier, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    photos = files(tmp_path, "photo1.jpg", "photo2.jpg")
    given = {
        "text": message(ANNA),
        "text to a group": message(GROUP),
        "photo": replace(message(ANNA, "x"), content=Content(attachments=photos[:1])),
        "group of files": replace(message(ANNA, "x"), content=Content(attachments=photos)),
        "edit": replace(message(ANNA, "x"), content=Content(edit="1")),
        "removal": replace(message(ANNA, "x"), content=Content(remove="1")),
    }
    played = {}
    for kind, sent in given.items():
        for name, answered in ANSWERS.items():
            relay.answers.append(answered)
            (outcome,) = await courier.attempt([sent])
            calls = [call[:2] for call in relay.received()]
            played[f"{kind}: {name}"] = [calls if kind == "text" else [call[0] for call in calls], shown(outcome)]
            relay.answers.clear()
    compare("answers", played, relay.server.token, caplog)


async def test_silence_leaves_it_open_whether_a_message_was_sent(
    relay: Relay, courier: Courier, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    played = {}
    for kind, content in {"text": None, "photo": Content(attachments=files(tmp_path, "photo1.jpg"))}.items():
        relay.answers.append(SILENCE)
        (outcome,) = await courier.attempt([replace(message(ANNA), content=content)])
        played[kind] = [[call[0] for call in relay.received()], shown(outcome)]
    compare("silence", played, relay.server.token, caplog)
