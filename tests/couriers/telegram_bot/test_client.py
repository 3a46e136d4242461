"""The client of the Bot API, against servers that answer in ways of their own."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from core.errors import SetupError
from couriers.telegram_bot.client import BotClient, NoAnswer, Unreadable, check_token
from couriers.telegram_bot.library import TelegramMethod, methods, types
from tests.support.serving import serving_app

TOKEN = "4343:a-secret"


def shown(value: Any) -> Any:
    """A parameter; of a file its name and content."""
    return (value.filename, value.file.read()) if isinstance(value, web.FileField) else value


def api(result: Any, received: list[Any]) -> web.Application:
    """A Bot API with one result; it notes the bodies of the calls."""

    async def answer(request: web.Request) -> web.Response:
        is_json = request.content_type == "application/json"
        fields = await request.json() if is_json else await request.post()
        received.append({name: shown(value) for name, value in fields.items()})
        return web.json_response({"ok": True, "result": result})

    app = web.Application()
    app.router.add_post(f"/bot{TOKEN}/{{method}}", answer)
    return app


async def called(app: web.Application, method: TelegramMethod[Any]) -> Any:
    async with serving_app(app) as url:
        client = BotClient(TOKEN, url)
        try:
            return await client(method)
        finally:
            await client.close()


async def test_a_parameter_that_is_none_is_left_out_and_false_and_empty_ones_are_not() -> None:
    received: list[Any] = []
    answer = methods.AnswerCallbackQuery(callback_query_id="1", text="", show_alert=False, cache_time=0)
    assert await called(api([1], received), answer) == [1]
    assert received == [{"callback_query_id": "1", "text": "", "show_alert": "false", "cache_time": "0"}]


async def test_a_file_is_read_piece_by_piece_while_it_is_sent(tmp_path: Path) -> None:
    """The memory does not depend on the size of the files that are sent at once."""
    received = 0

    async def take(request: web.Request) -> web.Response:
        nonlocal received
        async for piece in request.content.iter_chunked(65536):
            received += len(piece)
        return web.json_response({"ok": True, "result": True})

    app = web.Application()
    app.router.add_post("/{bot}/{method}", take)
    file = tmp_path / "large.bin"
    file.write_bytes(bytes(16 * 2**20))
    tracemalloc.start()
    await called(app, methods.SendDocument(chat_id="1", document=types.FSInputFile(file)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert received > 16 * 2**20
    assert peak < 8 * 2**20


async def test_a_redirect_is_not_followed_because_it_would_take_the_token_elsewhere() -> None:
    reached: list[Any] = []

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(f"/elsewhere{request.path}")

    app = web.Application()
    app.router.add_post(f"/bot{TOKEN}/{{method}}", redirect)
    app.add_subapp("/elsewhere/", api(True, reached))
    with pytest.raises(Unreadable):
        await called(app, methods.SendMessage(chat_id="1", text="x"))
    assert reached == []


async def test_no_error_of_a_broken_connection_shows_the_token() -> None:
    client = BotClient(TOKEN, "http://127.0.0.1:1")
    with pytest.raises(NoAnswer) as fault:
        await client(methods.GetMe())
    with pytest.raises(SetupError) as setup:
        await check_token(client)
    await client.close()
    assert TOKEN not in f"{fault.value!r}{fault.value.__cause__!r}{setup.value!r}"
