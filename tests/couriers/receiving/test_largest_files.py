"""Files that a person sends to an inbox, over each channel that fetches files: the largest one, one that is gone."""

from collections.abc import Callable

import pytest
from aiohttp import web

from couriers.max.client import Settings as MaxSettings
from couriers.max.receive import open_receiver as open_max
from couriers.receiving.receiver import Receiver
from couriers.telegram_bot.courier import Settings as BotSettings
from couriers.telegram_bot.receive import open_receiver as open_telegram_bot
from couriers.vk.courier import Settings as VkSettings
from couriers.vk.receive import open_receiver as open_vk
from tests.support.serving import serving_app

LARGEST = 20 * 2**20
EVENT = {"chat_id": 1, "message_id": 2, "attachments": [{"type": "document", "file_id": "f"}]}


def provider(size: int) -> web.Application:
    """Play the Bot API, VK and MAX for one message with one file of this size."""

    async def telegram(request: web.Request) -> web.Response:
        return web.json_response({"ok": True, "result": {"file_id": "f", "file_size": size, "file_path": "film"}})

    async def vk(request: web.Request) -> web.Response:
        document = {"type": "doc", "doc": {"url": str(request.url.origin() / "film")}}
        return web.json_response({"response": {"items": [{"attachments": [document]}]}})

    async def max_messages(request: web.Request) -> web.Response:
        file = {"type": "file", "payload": {"url": str(request.url.origin() / "film")}}
        return web.json_response({"messages": [{"body": {"attachments": [file]}}]})

    async def film(request: web.Request) -> web.Response:
        return web.Response(body=bytes(size))

    app = web.Application()
    app.router.add_post("/bot4343:secret/{method}", telegram)
    app.router.add_route("*", "/method/messages.getByConversationMessageId", vk)
    app.router.add_get("/messages", max_messages)
    for path in ("/film", "/file/bot4343:secret/film"):
        app.router.add_get(path, film)
    return app


def three_files() -> web.Application:
    """Play the providers for a message with three files, of which the second one is not there any more."""
    names = "first", "gone", "last"

    def urls(request: web.Request) -> list[str]:
        return [str(request.url.origin() / name) for name in names]

    async def telegram(request: web.Request) -> web.Response:
        name = str((await request.post())["file_id"])
        if name == "gone":
            return web.json_response({"ok": False, "error_code": 400, "description": "Bad Request: gone"}, status=400)
        return web.json_response({"ok": True, "result": {"file_id": name, "file_size": 5, "file_path": name}})

    async def vk(request: web.Request) -> web.Response:
        documents = [{"type": "doc", "doc": {"url": url}} for url in urls(request)]
        return web.json_response({"response": {"items": [{"attachments": documents}]}})

    async def max_messages(request: web.Request) -> web.Response:
        files = [{"type": "file", "payload": {"url": url}} for url in urls(request)]
        return web.json_response({"messages": [{"body": {"attachments": files}}]})

    async def download(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return web.Response(body=name.encode()) if name != "gone" else web.Response(status=404)

    app = web.Application()
    app.router.add_post("/bot4343:secret/{method}", telegram)
    app.router.add_route("*", "/method/messages.getByConversationMessageId", vk)
    app.router.add_get("/messages", max_messages)
    for path in ("/{name}", "/file/bot4343:secret/{name}"):
        app.router.add_get(path, download)
    return app


RECEIVERS: list[Callable[[str], Receiver]] = [
    lambda url: open_telegram_bot(BotSettings("4343:secret", url), polls=True),
    lambda url: open_vk(VkSettings("secret", f"{url}/method/", allow_private=True), polls=True),
    lambda url: open_max(MaxSettings("secret", url, allow_private=True), polls=True),
]


@pytest.mark.parametrize("receiver", RECEIVERS, ids=["telegram-bot", "vk", "max"])
async def test_a_file_that_is_gone_hides_none_behind_it(receiver: Callable[[str], Receiver]) -> None:
    attachments = [{"type": "document", "file_id": name, "file_name": name} for name in ("first", "gone", "last")]
    async with serving_app(three_files()) as url:
        opened = receiver(url)
        assert opened.fetch
        found = [(one.name, one.data) async for one in opened.fetch({**EVENT, "attachments": attachments}, 10)]
        await opened.close()
    assert found == [("first", b"first"), ("last", b"last")]


@pytest.mark.parametrize("receiver", RECEIVERS, ids=["telegram-bot", "vk", "max"])
async def test_a_file_of_20_megabytes_is_fetched_and_a_larger_one_is_not(receiver: Callable[[str], Receiver]) -> None:
    found = []
    for size in (LARGEST, LARGEST + 1):
        async with serving_app(provider(size)) as url:
            opened = receiver(url)
            assert opened.fetch
            found.append([len(one.data) async for one in opened.fetch(EVENT, 10)])
            await opened.close()
    assert found == [[LARGEST], []]
