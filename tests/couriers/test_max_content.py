"""What a message in MAX has besides its text: marks, buttons, files, replies, edits, removals."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from couriers.max.content import LIMITS, parts
from couriers.sending import (
    Attachment,
    AttachmentType,
    Button,
    Content,
    Deferred,
    Feature,
    ParseMode,
    Reason,
    Scope,
    Sent,
)
from tests.couriers.contract import files, message
from tests.couriers.max_provider import MaxProvider, provider

__all__ = ["provider"]

ADDRESS = "300002"


async def show(provider: MaxProvider, content: Content, text: str = "hello", seed: str = "delivery") -> Any:
    courier = provider.opened[0] if provider.opened else await provider.open()
    return (await courier.attempt([replace(message(ADDRESS, text, seed), content=content)]))[0]


@pytest.mark.parametrize(
    ("text", "mode", "sent", "is_whole"),
    [
        ("a < b & c", ParseMode.PLAIN, "a < b & c", True),
        ("<b>a</b> &lt; <i>b</i>", ParseMode.HTML, "<b>a</b> &lt; <i>b</i>", True),
        ("*a* __b__ `c<d`", ParseMode.MARKDOWN_V2, "<b>a</b> <u>b</u> <code>c&lt;d</code>", True),
        (
            '<a href="https://x.ru/?a=1&amp;b=2">x</a>',
            ParseMode.HTML,
            '<a href="https://x.ru/?a=1&amp;b=2">x</a>',
            True,
        ),
        ("<tg-spoiler>a</tg-spoiler> <b>b</b>", ParseMode.HTML, "a <b>b</b>", False),
        ("<tg-spoiler>a</tg-spoiler>", ParseMode.HTML, "a", False),
    ],
)
def test_marks_are_written_in_the_html_of_max(text: str, mode: ParseMode, sent: str, is_whole: bool) -> None:
    (part,), shows_all = parts(text, mode)
    assert (part.text, shows_all) == (sent, is_whole)


def test_a_long_text_with_marks_is_split_and_each_part_is_short_enough_with_its_marks() -> None:
    text = "<b>" + "ж&amp; " * 1300 + "</b>"
    found, _ = parts(text, ParseMode.HTML)
    assert "".join(part.shown for part in found) == "ж& " * 1300
    assert all(len(part.text) <= 4000 and part.text.startswith("<b>") for part in found)


async def test_buttons_are_a_keyboard_and_texts_in_place_of_the_keyboard_write_themselves(
    provider: MaxProvider,
) -> None:
    rows = [[Button("Да", "yes")] * 9, [Button("Сайт", url="https://example.org")] * 4]
    await show(provider, Content(inline=rows))
    (shown,) = provider.shown(ADDRESS)
    assert [len(row) for row in shown["buttons"]] == [7, 2, 3, 1]
    outcome = await show(provider, Content(reply=[["Пары", "Помощь"]]))
    button_of = provider.shown(ADDRESS)[-1]
    assert [[one["text"] for one in row] for row in button_of["buttons"]] == [["Пары", "Помощь"]]
    provider.server.people.press(int(ADDRESS), button_of["id"], "Пары")
    assert (provider.shown(ADDRESS)[-1]["text"], outcome.not_shown) == ("Пары", ())
    both = await show(provider, Content(inline=[[Button("Да", "yes")]], reply=[["Пары"]]))
    assert both.not_shown == (Feature.REPLY,)


async def test_a_button_asks_for_the_contact(provider: MaxProvider) -> None:
    outcome = await show(provider, Content(reply=[["No", "Share", "a", "b"]], request_contact=["Share"]))
    shown = provider.shown(ADDRESS)[-1]
    assert ([len(row) for row in shown["buttons"]], outcome.not_shown) == ([3, 1], ())
    provider.server.people.press(int(ADDRESS), shown["id"], "Share")
    assert provider.shown(ADDRESS)[-1]["kind"] == "contact"


@pytest.mark.parametrize(
    ("content", "fits"),
    [
        (Content(inline=[[Button("a", "b")]] * 30), True),
        (Content(inline=[[Button("a", "b")]] * 31), False),
        (Content(inline=[[Button("a" * 128, "b" * 1024)]]), True),
        (Content(inline=[[Button("a" * 129, "b")]]), False),
        (Content(inline=[[Button("a", "b" * 1025)]]), False),
        (Content(inline=[[Button("a", url="https://" + "x" * 2048)]]), False),
        (Content(reply=[["a" * 129]]), False),
    ],
)
def test_more_than_a_keyboard_can_have_is_shown_as_text(content: Content, fits: bool) -> None:
    assert LIMITS.fits(content) is fits


async def test_a_file_is_transferred_once_for_a_delivery_and_shown_by_its_type(
    provider: MaxProvider, tmp_path: Path
) -> None:
    attachments = []
    for name, kind in [
        ("a.png", AttachmentType.PHOTO),
        ("b.pdf", AttachmentType.DOCUMENT),
        ("c.mp4", AttachmentType.VIDEO),
    ]:
        (tmp_path / name).write_bytes(b"bytes")
        attachments.append(Attachment(kind, str(tmp_path / name)))
    outcomes = [await show(provider, Content(attachments=attachments)) for _ in range(2)]
    assert {one.not_shown for one in outcomes} == {()}
    assert [one["type"] for one in provider.shown(ADDRESS)[0]["files"]] == ["image", "file", "video"]
    assert provider.state.counter("max", "uploads") == 3


async def test_many_files_go_with_the_first_parts_and_the_buttons_with_the_last(
    provider: MaxProvider, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(b"bytes")
    files = [Attachment(AttachmentType.PHOTO, str(tmp_path / "a.png"))] * 13
    outcome = await show(provider, Content(attachments=files, inline=[[Button("Да", "yes")]]))
    shown = provider.shown(ADDRESS)
    assert [(len(one["files"]), len(one["buttons"])) for one in shown] == [(11, 0), (2, 1)]
    assert outcome == Sent(",".join(one["id"] for one in shown))


async def test_a_reply_an_edit_and_a_removal_name_messages_by_their_mids(provider: MaxProvider) -> None:
    first = await show(provider, Content(inline=[[Button("Да", "yes")]]), "one")
    second = await show(provider, Content(reply_to=first.reference), "two")
    assert provider.shown(ADDRESS)[1]["reply_to"] == first.reference
    edited = await show(provider, Content(edit=first.reference), "changed")
    removed = await show(provider, Content(remove=second.reference), "three")
    shown = provider.shown(ADDRESS)
    assert [one["text"] for one in shown] == ["changed", "three"]
    assert (shown[0]["buttons"], edited, removed.not_shown) == ([], Sent(first.reference), ())


async def test_an_edit_changes_the_last_part_of_a_long_message_which_has_the_buttons(provider: MaxProvider) -> None:
    first = await show(provider, Content(inline=[[Button("Да", "yes")]]), "a" * 4001, "1")
    await show(provider, Content(edit=first.reference), "changed", "2")
    assert [one["text"] for one in provider.shown(ADDRESS)] == ["a" * 4000, "changed"]


async def test_an_edit_keeps_the_file_of_a_message_or_exchanges_it(provider: MaxProvider, tmp_path: Path) -> None:
    old, new = files(tmp_path, "photo1.png", "document1.pdf")
    first = await show(provider, Content(attachments=[old], inline=[[Button("Да", "yes")]]), "one", "1")
    before = provider.shown(ADDRESS)[0]["files"]
    gone = Attachment(AttachmentType.PHOTO, str(tmp_path / "gone.png"))
    edits = [((), ()), ((new,), ()), ((gone,), ("photo gone.png",))]
    found = []
    for number, (attachments, not_shown) in enumerate(edits):
        edit = Content(edit=first.reference, attachments=attachments)
        assert await show(provider, edit, f"{number}", f"edit{number}") == Sent(first.reference, not_shown=not_shown)
        found.append(provider.shown(ADDRESS)[0])
    assert [(one["text"], one["buttons"], len(one["files"])) for one in found] == [(f"{n}", [], 1) for n in range(3)]
    assert [one["files"] == before for one in found] == [True, False, False]
    assert found[1]["files"] == found[2]["files"]


async def test_a_message_that_is_gone_is_not_replied_to_and_not_edited_and_counts_as_removed(
    provider: MaxProvider,
) -> None:
    gone = (await show(provider, Content(inline=[[Button("Да", "yes")]]))).reference
    await show(provider, Content(remove=gone), "two")
    reply = await show(provider, Content(reply_to=gone), "three")
    edit = await show(provider, Content(edit=gone), "four")
    remove = await show(provider, Content(remove=gone), "five")
    assert [one["text"] for one in provider.shown(ADDRESS)] == ["two", "three", "four", "five"]
    assert [one.not_shown for one in (reply, edit, remove)] == [(Feature.REPLY_TO,), (), ()]


async def test_what_comes_before_the_message_and_fails_for_now_defers_it_and_nothing_is_sent(
    provider: MaxProvider, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(b"bytes")
    content = Content(attachments=[Attachment(AttachmentType.PHOTO, str(tmp_path / "a.png"))])
    provider.inject_fault("server_error", method="upload")
    assert await show(provider, content) == Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, "internal.error")
    provider.inject_fault("disconnect_before", method="upload")
    assert isinstance(await show(provider, content), Deferred)
    assert provider.received(ADDRESS) == []
    assert isinstance(await show(provider, content), Sent)
