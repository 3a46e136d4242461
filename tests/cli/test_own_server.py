"""The key of a data directory is sent only to the server of that directory, whatever else listens at ADA_HTTP."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from cli.client.own_server import get_or_create_api_key
from cli.settings.settings import Settings
from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.system.crash.process import AdaProcess

SEND = ("send", "--to", "1=telegram:100001", "--text", "x")
Answer = Callable[[web.Request], Awaitable[web.Response]]


@dataclass
class Home:
    """A data directory with a key, and the real server of that directory at `url`."""

    data: Path
    key: str
    url: str

    async def ada(self, http: str, *words: str, **settings: str) -> tuple[int, str]:
        """Runs a command against what listens at `http`; returns its exit code and its errors."""
        environment = {
            "PATH": "/usr/bin",
            "PYTHONPATH": str(ROOT),
            "ADA_DATA": str(self.data),
            "ADA_HTTP": http,
            **settings,
        }
        command = (sys.executable, "-P", "-m", "cli", *words)
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, cwd=self.data, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        _, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, errors.decode()


@dataclass
class Stranger:
    """Another program that listens. `seen`: all Authorization headers."""

    address: str = ""
    seen: list[str] = field(default_factory=list)


@asynccontextmanager
async def stranger(answer: Answer) -> AsyncIterator[Stranger]:
    found = Stranger()

    async def handle(request: web.Request) -> web.Response:
        found.seen += request.headers.getall("Authorization", [])
        return await answer(request)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    found.address = f"{host}:{port}"
    yield found
    await runner.cleanup()


@pytest.fixture
async def home(own_server: Server, tmp_path: Path) -> AsyncIterator[Home]:
    data = tmp_path / "data"
    key = get_or_create_api_key(Settings(data=data))
    settings = {"ADA_REDIS_URL": own_server.url, "ADA_DATA": str(data), "ADA_HTTP": "127.0.0.1:0", "ADA_API_KEY": key}
    serve = AdaProcess(("serve",), settings, tmp_path / "serve.log")
    yield Home(data, key, str((await serve.ready())["http"]))
    serve.kill()


async def test_the_server_of_the_data_directory_gets_its_key(home: Home) -> None:
    code, errors = await home.ada(home.url.removeprefix("http://"), *SEND)
    assert (code, errors) == (0, "")


async def test_another_program_does_not_get_the_key(home: Home) -> None:
    async def anything(request: web.Request) -> web.Response:
        return web.json_response({"proof": "0" * 64, "history_key": "x"})

    async with stranger(anything) as other:
        code, errors = await home.ada(other.address, *SEND)
    assert (code, errors.count("\n")) == (2, 1)
    assert "is not the Ada of this data directory, so it does not get the API key" in errors
    assert other.seen == []


async def test_a_program_that_passes_everything_on_to_the_real_server_does_not_get_the_key(home: Home) -> None:
    async def pass_on(request: web.Request) -> web.Response:
        async with ClientSession() as session, session.get(home.url + request.path_qs) as response:
            assert response.status == 200
            return web.Response(body=await response.read(), content_type="application/json")

    async with stranger(pass_on) as other:
        code, errors = await home.ada(other.address, *SEND)
    assert code == 2
    assert "is not the Ada of this data directory" in errors
    assert other.seen == []


async def test_a_key_that_the_user_has_set_is_sent_to_the_address_that_the_user_has_set(home: Home) -> None:
    async def anything(request: web.Request) -> web.Response:
        return web.json_response({"code": "NO", "title": "no"}, status=403)

    async with stranger(anything) as other:
        code, _ = await home.ada(other.address, *SEND, ADA_API_KEY="ada_elsewhere")
    assert code == 1
    assert set(other.seen) == {"Bearer ada_elsewhere"}


async def test_a_proof_needs_a_nonce_of_the_client(home: Home) -> None:
    async with ClientSession() as session:
        for nonce, status in (("0" * 32, 200), ("", 400), ("0" * 31, 400), ("g" * 32, 400)):
            async with session.get(f"{home.url}/v1/server-proof?nonce={nonce}") as response:
                assert response.status == status
                assert home.key not in await response.text()
