"""Keyboards, files, replies, edits and removals through the VK courier, against the sandbox."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from couriers.sending import Attachment, AttachmentType, Button, Content, Courier, Deferred, Message, Scope, Sent
from couriers.vk.content import attached
from tests.couriers.contract import message
from tests.couriers.file_server import PICTURE, FileServer, file_server
from tests.couriers.test_vk import VkProvider, provider

__all__ = ["provider"]

PERSON = "200001"
PHOTO, DOCUMENT, VOICE = AttachmentType.PHOTO, AttachmentType.DOCUMENT, AttachmentType.VOICE


@pytest.fixture
async def server() -> AsyncIterator[FileServer]:
    async with file_server() as started:
        yield started


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "menu.png"
    path.write_bytes(PICTURE)
    return path


class OpenProvider(VkProvider):
    """May download from this machine."""

    def settings(self) -> Any:
        return replace(super().settings(), allow_private=True, most_file_mb=1)


@pytest.fixture
async def open_provider(tmp_path: Path) -> AsyncIterator[VkProvider]:
    vk_provider = OpenProvider(tmp_path)
    await vk_provider.start()
    yield vk_provider
    await vk_provider.close()
    await vk_provider.stop()


def with_content(text: str = "Меню", seed: str = "delivery", **content: Any) -> Message:
    return replace(message(PERSON, text, seed), content=Content(**content))


async def send(courier: Courier, wanted: Message) -> Any:
    return (await courier.attempt([wanted]))[0]


def shown(provider: VkProvider, number: int = 1) -> dict[str, Any]:
    """What the person sees of the n-th message; its `files` by type and name."""
    found = provider.server.people.shown(PERSON, str(number)) or {}
    return {**found, "files": [(one["type"], one["name"]) for one in found.get("files", ())]}


async def test_buttons_are_a_keyboard_below_the_message_and_a_press_names_the_message(provider: VkProvider) -> None:
    rows = [[Button("Суп", "soup"), Button("Сайт", url="https://x.org")]]
    sent = await send(await provider.open(), with_content(inline=rows))
    assert sent == Sent("1", number=1)
    assert [[one["text"] for one in row] for row in shown(provider)["buttons"]] == [["Суп", "Сайт"]]
    provider.server.people.press(PERSON, int(sent.reference), "Суп")
    answer = await provider.server.long_poll.answer({"key": provider.server.long_poll.key, "ts": "1", "wait": "0"})
    pressed = answer["updates"][0]["object"]
    assert (pressed["payload"], pressed["conversation_message_id"]) == ({"data": "soup"}, 1)


async def test_a_reply_keyboard_stays_until_an_empty_one_removes_it(provider: VkProvider) -> None:
    courier = await provider.open()
    await send(courier, with_content(reply=[["Меню", "Назад"]]))
    assert [one["text"] for one in provider.server.people.keyboard(PERSON)[0]] == ["Меню", "Назад"]
    await send(courier, with_content(seed="second", reply=[]))
    assert provider.server.people.keyboard(PERSON) == []


async def test_files_are_transferred_once_for_all_recipients_of_a_delivery(provider: VkProvider, picture: Path) -> None:
    courier = await provider.open()
    content = Content(attachments=[Attachment(PHOTO, path=str(picture)), Attachment(DOCUMENT, path=str(picture))])
    messages = [replace(one, content=content) for one in provider.messages(250)]
    before = provider.state.counter("vk", "execute")
    attempts = await asyncio.gather(courier.attempt(messages[:100]), courier.attempt(messages[100:]))
    outcomes = [outcome for attempt in attempts for outcome in attempt]
    assert all(isinstance(outcome, Sent) and not outcome.not_shown for outcome in outcomes)
    assert (provider.state.counter("vk", "uploads"), provider.state.counter("vk", "execute") - before) == (2, 2)
    assert shown(provider)["files"] == [("photo", "menu.png"), ("doc", "menu.png")]
    attachment = provider.server.people.shown(PERSON, "1")["files"][0]["attachment"]  # type: ignore[index]  # it is there
    assert provider.server.uploads.find(attachment).data == PICTURE


async def test_a_message_may_have_a_voice_and_no_text(provider: VkProvider, tmp_path: Path) -> None:
    (tmp_path / "answer.ogg").write_bytes(b"OggS")
    voice = Attachment(VOICE, path=str(tmp_path / "answer.ogg"))
    assert isinstance(await send(await provider.open(), with_content("", attachments=[voice])), Sent)
    assert (shown(provider)["text"], shown(provider)["files"]) == ("", [("audio_message", "answer.ogg")])


async def test_a_file_is_downloaded_and_one_that_is_too_large_is_not_shown(
    open_provider: VkProvider, server: FileServer
) -> None:
    files = [Attachment(PHOTO, url=f"{server.url}/{name}") for name in ("menu.png", "big", "gone")]
    sent = await send(await open_provider.open(), with_content(attachments=files))
    assert sent.not_shown == ("photo big", "photo gone")
    assert shown(open_provider)["files"] == [("photo", "menu.png")]


async def test_what_cannot_be_attached_is_not_shown_and_the_text_is_sent(
    provider: VkProvider, server: FileServer, picture: Path
) -> None:
    private, foreign = Attachment(PHOTO, url=f"{server.url}/menu.png"), Attachment(PHOTO, provider_id="AgACAgIAAxk")
    missing = Attachment(DOCUMENT, path=str(picture.with_name("list.csv")))
    many = [Attachment(PHOTO, path=str(picture))] * 8
    sent = await send(await provider.open(), with_content(attachments=[private, foreign, missing, *many]))
    assert sent.not_shown == ("photo menu.png", "photo", "document list.csv", "photo menu.png")
    assert (len(shown(provider)["files"]), shown(provider)["text"], server.paths) == (7, "Меню", [])


async def test_a_message_replies_to_another_one_of_the_dialog(provider: VkProvider) -> None:
    courier = await provider.open()
    first = await send(courier, with_content())
    await send(courier, with_content(seed="second", reply_to=first.reference))
    assert shown(provider, 2)["reply_to"] == 1


async def test_a_reply_to_a_message_that_is_gone_is_a_message_of_its_own(provider: VkProvider) -> None:
    sent = await send(await provider.open(), with_content(reply_to="9"))
    assert (sent.reference, sent.not_shown, shown(provider)["reply_to"]) == ("1", ("reply_to",), None)


async def test_a_text_with_content_that_is_too_long_is_cut_and_that_is_recorded(provider: VkProvider) -> None:
    sent = await send(await provider.open(), with_content("я" * 5000, reply=[["Меню"]]))
    assert (sent.not_shown, shown(provider)["text"]) == (("text_end",), "я" * 4093 + "...")


async def test_an_edit_replaces_text_buttons_and_files(provider: VkProvider, picture: Path) -> None:
    courier = await provider.open()
    await courier.attempt([message("6")])  # from here on the id of a message is not its number in the dialog
    first = await send(courier, with_content(inline=[[Button("Суп", "soup")]]))
    photo = [Attachment(PHOTO, path=str(picture))]
    edited = await send(courier, with_content("Суп", "second", edit=first.reference, attachments=photo))
    assert edited == Sent("1")
    now = shown(provider, 2)
    assert (now["text"], now["buttons"], now["files"], now["edited"]) == ("Суп", [], [("photo", "menu.png")], True)
    assert len(provider.received(PERSON)) == 1


@pytest.mark.parametrize("kind", [PHOTO, DOCUMENT, VOICE])
async def test_an_edit_without_files_keeps_those_that_are_there(
    provider: VkProvider, picture: Path, kind: AttachmentType
) -> None:
    courier, file = await provider.open(), [Attachment(kind, path=str(picture))]
    first = await send(courier, with_content(inline=[[Button("Суп", "soup")]], attachments=file))
    before = shown(provider)["files"]
    assert await send(courier, with_content("Суп", "second", edit=first.reference)) == Sent("1")
    now = shown(provider)
    assert (now["text"], now["buttons"], len(before), now["files"]) == ("Суп", [], 1, before)


def test_an_attachment_is_named_by_its_ids_and_the_preview_of_a_link_has_none() -> None:
    assert attached({"type": "video", "video": {"owner_id": -1, "id": 2}}) == "video-1_2"
    assert attached({"type": "link", "link": {"url": "https://example.org"}}) == ""


@pytest.mark.parametrize("edit", ["9", "text"])
async def test_a_refused_edit_becomes_a_new_message(provider: VkProvider, edit: str) -> None:
    assert isinstance(await send(await provider.open(), with_content(edit=edit)), Sent)
    assert provider.received(PERSON) == ["Меню"]


async def test_a_message_is_removed_before_the_next_one_and_one_of_the_person_cannot_be(provider: VkProvider) -> None:
    courier = await provider.open()
    first = await send(courier, with_content())
    assert (await send(courier, with_content("Новое", "second", remove=first.reference))).not_shown == ()
    assert provider.server.people.shown(PERSON, "1") is None
    number = provider.server.write(PERSON, "Привет")
    assert (await send(courier, with_content("И ещё", "third", remove=str(number)))).not_shown == ("remove",)


@pytest.mark.parametrize("method", ["photos.getMessagesUploadServer", "photos.saveMessagesPhoto", "messages.edit"])
async def test_a_limit_met_before_the_message_defers_it_and_later_it_is_sent_whole(
    provider: VkProvider, picture: Path, method: str
) -> None:
    courier = await provider.open()
    provider.inject_fault("call_error", 9, method=method)
    photo = [Attachment(PHOTO, path=str(picture))]
    wanted = with_content(attachments=photo, edit="1" if method == "messages.edit" else "")
    deferred = await send(courier, wanted)
    assert isinstance(deferred, Deferred)
    assert deferred.scope is Scope.ACCOUNT
    assert isinstance(await send(courier, wanted), Sent)
    assert shown(provider)["files"] == [("photo", "menu.png")]


async def test_a_repeat_with_the_same_seed_is_received_once_also_with_files(
    provider: VkProvider, picture: Path
) -> None:
    wanted = with_content(attachments=[Attachment(PHOTO, path=str(picture))])
    first, second = await provider.open(), await provider.open()
    assert await send(first, wanted) == await send(second, wanted)
    assert provider.received(PERSON) == ["Меню"]


async def test_a_message_without_content_makes_no_further_request(provider: VkProvider) -> None:
    courier = await provider.open()
    before = provider.state.counter("vk", "http")
    await courier.attempt(provider.messages(2500))
    assert provider.state.counter("vk", "http") - before == 1
