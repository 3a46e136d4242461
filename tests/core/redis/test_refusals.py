"""A server that cannot be used: one accurate message per cause, with the remedy. Real servers that refuse."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis import Redis

from core.errors import AdaError, SetupError, StoreUnavailable
from core.redis.server_checks import check_channels
from core.redis.store import Store
from tests.support.servers import Server
from tests.support.waiting import await_sync

REMEDY = "ACL SETUSER limited"


@pytest.fixture
def administrator(server: Server) -> Iterator[Redis]:
    with Redis.from_url(server.url) as client:
        yield client
        client.acl_deluser("limited")


def set_user(administrator: Redis, *words: str) -> None:
    administrator.execute_command("ACL", "SETUSER", "limited", *words)  # type: ignore[no-untyped-call]


def url_of(server: Server, login: str, path: str = "/0") -> str:
    return f"redis://{login}127.0.0.1:{server.place.port}{path}"


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = await Store.open(url, patience=0.5)
    yield store
    await store.close()


async def refusal(url: str) -> AdaError:
    with pytest.raises(AdaError) as refused:
        async with opened(url):
            pass
    return refused.value


@pytest.mark.parametrize(
    ("login", "path", "expected"),
    [
        (":wrong@", "/0", "refuses the password of user 'default'"),
        ("nobody:wrong@", "/0", "refuses the password of user 'nobody'"),
        ("", "/0", "needs a password"),
        (":PASSWORD@", "/abc", "'abc', which is not the number of a database"),
        (":PASSWORD@", "/1/2", "'1/2', which is not the number of a database"),
        (":PASSWORD@", "/99", "has no database 99"),
        (":PASSWORD/word@", "/0", "special character of the password is not quoted"),
        (":PASSWORD@", "/0?socket_timeout=x", "its port or an option is wrong"),
    ],
)
async def test_a_wrong_address_or_password_names_its_cause(
    server: Server, login: str, path: str, expected: str
) -> None:
    found = await refusal(url_of(server, login.replace("PASSWORD", server.place.password), path))
    assert isinstance(found, SetupError)
    assert expected in str(found)
    assert "ADA_REDIS_URL" in str(found)
    assert server.place.password not in str(found)


async def test_tls_on_a_port_without_tls_names_the_right_scheme(server: Server) -> None:
    found = await refusal(url_of(server, f":{server.place.password}@").replace("redis:", "rediss:"))
    assert isinstance(found, SetupError)
    assert "does not speak TLS. Begin ADA_REDIS_URL with redis:// instead." in str(found)
    assert server.place.password not in str(found)


@pytest.mark.parametrize("url", ["http://127.0.0.1/0", "nonsense", "redis://h:port/0"])
async def test_a_url_that_cannot_be_read_shows_the_right_form(url: str) -> None:
    found = await refusal(url)
    assert isinstance(found, SetupError)
    assert "It looks like redis://user:password@host:6379/0." in str(found)


async def test_an_unreachable_server_is_not_a_wrong_setting(tmp_path: Path) -> None:
    for url in ("redis://127.0.0.1:1/0", f"unix://{tmp_path}/socket", "redis://no-such-host.invalid:6379/0"):
        assert isinstance(await refusal(url), StoreUnavailable)


@pytest.mark.parametrize(
    "rights",
    ["~* &* +@all -@scripting", "~other:* &* +@all", "~* &* +@all -exists"],
    ids=["no scripts", "other keys", "one command missing"],
)
async def test_a_missing_right_is_named_with_the_command_that_grants_it(
    server: Server, administrator: Redis, rights: str
) -> None:
    set_user(administrator, "on", ">secret", *rights.split())
    found = await refusal(url_of(server, "limited:secret@"))
    assert isinstance(found, SetupError)
    assert "lacks a right that Ada needs" in str(found)
    assert REMEDY in str(found)


async def test_the_granted_rights_are_enough(server: Server, administrator: Redis) -> None:
    set_user(administrator, "on", ">secret")
    remedy = str(await refusal(url_of(server, "limited:secret@"))).partition("redis-cli ")[2]
    set_user(administrator, *(word.strip("'") for word in remedy.split()[3:]))
    async with opened(url_of(server, "limited:secret@")) as store:
        await check_channels(store)
        assert await store.command("CONFIG", "GET", "appendonly")


async def test_missing_rights_on_channels_are_named(server: Server, administrator: Redis) -> None:
    set_user(administrator, "on", ">secret", "~*", "+@all", "resetchannels")
    async with opened(url_of(server, "limited:secret@")) as store:
        with pytest.raises(SetupError, match=REMEDY):
            await check_channels(store)


class WithoutHello(Server):
    """A server that does not know HELLO, like Redis 5."""

    def _await_reply(self) -> None:
        with Redis.from_url(self.url, protocol=2) as client:
            await_sync(lambda: self._replies(client), what="a reply of the server")


async def test_a_server_without_hello_is_reported_as_too_old(tmp_path: Path) -> None:
    own = WithoutHello(tmp_path / "valkey")
    with own.place.config.open("a") as config:
        config.write('rename-command HELLO ""\n')
    own.start()
    try:
        found = await refusal(own.url)
        assert isinstance(found, SetupError)
        assert "does not know HELLO" in str(found)
        assert "Redis 7.0 or Valkey" in str(found)
    finally:
        own.kill()


async def test_a_server_of_an_older_version_is_refused() -> None:
    """Redis 6.2 knows HELLO and no functions."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while calls := await reader.read(1000):
            writer.write(b"%2\r\n+server\r\n+redis\r\n+version\r\n+6.2.14\r\n" * len(re.findall(rb"\*\d+\r\n", calls)))
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = await refusal(f"redis://127.0.0.1:{port}/0")
    assert isinstance(found, SetupError)
    assert str(found) == "Redis 6.2.14 is too old: Redis 7.0 or Valkey is needed."
    server.close()


async def test_a_user_without_the_right_to_load_functions_is_refused_unless_they_are_there(
    server: Server, administrator: Redis
) -> None:
    set_user(administrator, "on", ">secret", "~*", "&*", "+@all", "-function|load")
    administrator.function_flush()
    assert REMEDY in str(await refusal(url_of(server, "limited:secret@")))
    async with opened(server.url):
        pass
    async with opened(url_of(server, "limited:secret@")) as store:
        assert await store.run("audit_keys", 0) == []
