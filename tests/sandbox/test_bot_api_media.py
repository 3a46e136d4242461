"""Files through the Bot API of the sandbox, with an unmodified aiogram."""

import pytest
from aiohttp import ClientSession

from sandbox.sandbox import Sandbox
from tests.sandbox.bot_api_clients import ANNA, BotApi, bot_api, refusal, session
from tests.support.whole_aiogram import Bot, types

__all__ = ["bot_api"]


def photo(name: str, caption: str | None = None) -> types.InputMediaPhoto:
    return types.InputMediaPhoto(media=types.BufferedInputFile(name.encode(), name), caption=caption, parse_mode="HTML")


async def test_videos_animations_and_audio_are_sent(bot_api: BotApi) -> None:
    video = await bot_api.bot.send_video(ANNA, types.BufferedInputFile(b"v", "a.mp4"), duration=3)
    animation = await bot_api.bot.send_animation(ANNA, types.BufferedInputFile(b"a", "a.gif"), caption="Привет")
    audio = await bot_api.bot.send_audio(ANNA, types.BufferedInputFile(b"m", "a.mp3"))
    assert video.video is not None
    assert animation.animation is not None
    assert audio.audio is not None
    assert (video.video.duration, video.video.file_name, animation.caption) == (3, "a.mp4", "Привет")
    assert bot_api.texts(ANNA) == ["[video] a.mp4", "Привет", "[audio] a.mp3"]


async def test_a_group_of_media_is_several_messages_with_one_album(bot_api: BotApi) -> None:
    video = types.InputMediaVideo(media="https://example.org/b.mp4")
    sent = await bot_api.bot.send_media_group(ANNA, [photo("a.png", "<b>Вот</b>"), video])
    assert [message.message_id for message in sent] == [1, 2]
    assert len({message.media_group_id for message in sent}) == 1
    assert (sent[0].caption, sent[0].caption_entities and sent[0].caption_entities[0].type) == ("Вот", "bold")
    assert sent[0].photo is not None
    again = await bot_api.bot.send_media_group(
        ANNA, [photo("c.png"), types.InputMediaPhoto(media=sent[0].photo[-1].file_id)]
    )
    assert again[1].photo is not None
    assert again[1].photo[0].file_unique_id == sent[0].photo[0].file_unique_id


async def test_a_group_that_telegram_would_refuse_is_refused_as_a_whole(bot_api: BotApi) -> None:
    send = bot_api.bot.send_media_group
    document = types.InputMediaDocument(media=types.BufferedInputFile(b"d", "a.pdf"))
    assert "2-10 items" in await refusal(send(ANNA, [photo("a.png")]))
    assert "2-10 items" in await refusal(send(ANNA, [photo(f"{n}.png") for n in range(11)]))
    assert "in one album" in await refusal(send(ANNA, [photo("a.png"), document]))
    assert "can't parse entities" in await refusal(send(ANNA, [photo("a.png"), photo("b.png", "<b>open")]))
    assert "wrong file identifier" in await refusal(send(ANNA, [photo("a.png"), types.InputMediaPhoto(media="nosuch")]))
    assert bot_api.texts(ANNA) == []


async def test_several_messages_are_deleted_at_once_and_missing_ones_are_skipped(bot_api: BotApi) -> None:
    for _ in range(3):
        await bot_api.bot.send_message(ANNA, "x")
    assert await bot_api.bot.delete_messages(ANNA, [1, 3, 99])
    assert [message["message_id"] for message in bot_api.server.people.messages(ANNA)] == [2]
    assert "not specified" in await refusal(bot_api.bot.delete_messages(ANNA, []))


@pytest.mark.parametrize(
    ("name", "kind"), [("a.png", "image/png"), ("a.ogg", "audio/ogg"), ("a.html", "application/octet-stream")]
)
async def test_the_inbox_serves_files_and_shows_no_foreign_page(sandbox: Sandbox, name: str, kind: str) -> None:
    async with Bot(sandbox.bot_api.token, session=session(sandbox.bot_api)).context() as bot:
        await bot.send_document(ANNA, types.BufferedInputFile(b"content", name))
    (message,) = sandbox.bot_api.people.shown(ANNA)["messages"]
    (file,) = message["files"]
    async with (
        ClientSession() as client,
        client.get(f"{sandbox.web.url}telegram-bot/files/{file['attachment']}") as got,
    ):
        assert (await got.read(), got.content_type) == (b"content", kind)
        assert got.headers["Content-Security-Policy"] == "default-src 'none'"
    async with ClientSession() as client, client.get(f"{sandbox.web.url}telegram-bot/files/nosuch") as got:
        assert got.status == 404
