"""The files of the console as they are served."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest

from core.admission.api_keys import ApiKeys
from core.directory import Directory
from core.redis.store import Store
from core.sessions import Sessions
from delivery.console.files import console_files
from tests.delivery.conftest import Api
from tests.delivery.console.conftest import Person

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


def address(name: str) -> str:
    """The address of a file."""
    return f"/console/{console_files().tree}/{name}"


async def test_the_page_is_asked_for_each_time_and_names_the_files_of_its_version(api: Api) -> None:
    page = await api.call("GET", "/")
    assert page.headers["Cache-Control"] == "no-cache"
    assert page.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    named = set(re.findall(r'(?:src|href)="(/[^"]+)"', page.body.decode()))
    assert address("main.js") in named
    for file in named:
        assert (await api.call("GET", file)).status == 200, file


@pytest.mark.parametrize(
    ("accepted", "encoding", "decompress"),
    [
        ("gzip, deflate, br, zstd", "br", brotli.decompress),
        ("gzip;q=1.0, br;q=0.5", "br", brotli.decompress),
        ("gzip, brotli", "gzip", gzip.decompress),
        ("identity", None, bytes),
    ],
)
async def test_a_file_is_compressed_and_kept_for_ever(
    api: Api, accepted: str, encoding: str | None, decompress: Callable[[bytes], bytes]
) -> None:
    async with api.session.get(
        api.url + address("main.js"), headers={"Accept-Encoding": accepted}, auto_decompress=False
    ) as response:
        assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert response.headers.get("Content-Encoding") == encoding
        assert decompress(await response.read()) == console_files().files["main.js"].plain


@pytest.mark.parametrize(
    "path",
    [
        address("no.js"),
        "/console/0000000000000000/main.js",
        address("index.html"),
        address("../docs.html"),
        address("..%2Fdocs.html"),
    ],
)
async def test_nothing_else_is_served_below_the_address_of_the_console(api: Api, path: str) -> None:
    response = await api.call("GET", path)
    assert (response.status, response.code) == (404, "ROUTE_NOT_FOUND")


def test_the_hash_covers_every_file_so_a_new_version_has_new_addresses() -> None:
    files = console_files()
    assert re.fullmatch("[0-9a-f]{16}", files.tree)
    assert set(files.pages) == {"index.html"}
    assert files.tree.encode() in files.pages["index.html"].plain


def test_no_text_of_a_script_has_several_lines_so_that_spaces_can_be_left_out() -> None:
    scripts = [path.read_text() for path in Path("delivery/console/static").rglob("*.js")]
    assert scripts
    assert not [line for script in scripts for line in script.splitlines() if line.count("`") % 2]


def test_a_string_of_the_style_keeps_its_spaces() -> None:
    strings = re.compile(r'"[^"\n]*"')
    written = Path("delivery/console/static/style/style.css").read_text()
    served = console_files().files["style/style.css"].plain.decode()
    assert '": "' in served
    assert strings.findall(served) == strings.findall(written)


@pytest.mark.parametrize(("language", "other"), [("en", "ru"), ("ru", "en")])
def test_the_whole_console_is_small_in_each_language(language: str, other: str) -> None:
    served = console_files()
    files = {**served.files, **served.pages}
    assert f"words/{language}.json" in files
    loaded = [file for name, file in files.items() if not name.endswith(f"/{other}.json")]
    assert sum(len(file.with_brotli) for file in loaded) <= 120_000


async def cookie_of(person: Person, store: Store, who: str) -> str:
    """A new session of this kind of user; "" without a sign-in."""
    api_keys = ApiKeys(store)
    sessions = Sessions(store, Directory(store), api_keys)
    if who == "nobody":
        return ""
    if who == "teacher":
        await person.running.call("POST", "/v1/users", {"id": "a teacher", "name": "Anna", "role": "trainer"})
        return (await sessions.begin_as_person("default", "a teacher")).secret
    _, secret = await api_keys.create(who, [who])
    return (await sessions.begin_with_key(secret)).secret


@pytest.mark.parametrize("who", ["nobody", "teacher", "send", "manage", "inspect", "admin", "operator"])
async def test_the_first_page_needs_few_requests_and_few_bytes(person: Person, store: Store, who: str) -> None:
    """The stream of changes is one of the requests; the icon is part of the page."""
    cookie, url = await cookie_of(person, store, who), person.running.url
    if cookie:
        await person.browser.set_cookie(url, "ada_session", cookie)
    await person.browser.open(url + "/", "ru")
    await person.settled()
    if who in ("inspect", "operator"):
        await person.sees("на связи")
    requested = await person.browser.requested()
    assert len(requested) <= 14, "\n".join(requested)
    sizes = await person.browser.run(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        ".map((one) => [one.name, one.transferSize])"
    )
    assert sum(size for _, size in sizes) <= 45_000, "\n".join(map(str, sizes))
