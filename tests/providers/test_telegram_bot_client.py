"""The client of the Bot API, against servers that answer in ways of their own."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from core.errors import SetupError
from providers.telegram_bot.client import Client, check_token
from providers.telegram_bot.errors import BotApiError, Unreadable
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


async def called(app: web.Application, files: dict[str, Path] | None = None, **parameters: Any) -> Any:
    async with serving_app(app) as url:
        client = Client(TOKEN, url)
        try:
            return await client.call("sendMessage", files, **parameters)
        finally:
            await client.close()


async def test_a_parameter_that_is_none_is_left_out_and_false_is_not() -> None:
    received: list[Any] = []
    assert await called(api([1], received), text="x", reply_markup=None, show_alert=False) == [1]
    assert received == [{"text": "x", "show_alert": False}]


async def test_beside_a_file_all_but_texts_is_json(tmp_path: Path) -> None:
    (tmp_path / "отчёт.txt").write_bytes(b"content")
    received: list[Any] = []
    await called(api(True, received), {"one": tmp_path / "отчёт.txt"}, caption="<b>", media=[{"media": "attach://one"}])
    name_and_content = ("отчёт.txt", b"content")
    assert received == [{"caption": "<b>", "media": '[{"media": "attach://one"}]', "one": name_and_content}]


async def test_a_redirect_is_not_followed_because_it_would_take_the_token_elsewhere() -> None:
    reached: list[Any] = []

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(f"/elsewhere{request.path}")

    app = web.Application()
    app.router.add_post(f"/bot{TOKEN}/{{method}}", redirect)
    app.add_subapp("/elsewhere/", api(True, reached))
    with pytest.raises(Unreadable):
        await called(app, text="x")
    assert reached == []


async def test_no_error_of_a_broken_connection_shows_the_token() -> None:
    client = Client(TOKEN, "http://127.0.0.1:1")
    with pytest.raises(BotApiError) as fault:
        await client.call("getMe")
    with pytest.raises(SetupError) as setup:
        await check_token(client)
    await client.close()
    assert TOKEN not in f"{fault.value!r}{fault.value.__cause__!r}{setup.value!r}"
