"""The files of the inbox page, without a browser; test_page_chats.py has a browser."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from aiohttp import ClientSession

from sandbox import web
from sandbox.sandbox import Sandbox
from tests.sandbox.conftest import WebClient

FILES = {file.name: file for file in (Path(web.__file__).parent / "page").iterdir()}
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))
PAGE = FILES["index.html"].read_text()


def source() -> str:
    return "\n".join(file.read_text() for file in FILES.values())


async def test_every_file_of_the_page_is_served_with_a_policy_that_allows_only_them(
    sandbox: Sandbox, session: ClientSession
) -> None:
    kinds = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
    for path, name in [("", "index.html"), *((f"page/{name}", name) for name in FILES)]:
        async with session.get(sandbox.page_url + path) as response:
            assert (response.status, response.content_type) == (200, kinds[FILES[name].suffix])
            assert response.headers["Content-Security-Policy"] == (
                "default-src 'none'; "
                "script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; media-src 'self'; "
                "frame-src 'self'"
            )
            assert await response.text() == FILES[name].read_text()


@pytest.mark.parametrize("path", ["page/nosuch.js", "page/..%2Fserver.py", "page/"])
async def test_no_other_file_is_served(web_client: WebClient, path: str) -> None:
    assert (await web_client.call("GET", path))[0] == 404


def test_the_page_inserts_texts_without_markup() -> None:
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|setHTML|DOMParser", source())
    assert not re.findall(r"https?://|\bsrc=\"[^p]|@import|url\(", source())
    assert not re.findall(r"<[^>]+\son\w+=", PAGE)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_the_page_parses(name: str) -> None:
    try:
        checked = subprocess.run(["node", "--check", FILES[name]], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("needs the package nodejs: node not found")
    assert checked.returncode == 0, checked.stderr


def test_both_languages_have_every_word() -> None:
    shown = subprocess.run(["node", "--input-type=module", "-e", _PRINT_WORDS], capture_output=True, text=True)
    if shown.returncode:
        pytest.skip("needs the package nodejs: node not found")
    words = json.loads(shown.stdout)
    assert words["ru"].keys() == words["en"].keys()
    used = set(re.findall(r'data-text="(\w+)"', PAGE)) | set(re.findall(r'\bsay\("(\w+)"', source()))
    assert used <= words["en"].keys()


_PRINT_WORDS = f"""
import {{ readFileSync }} from "node:fs";
const source = readFileSync({json.dumps(str(FILES["words.js"]))}, "utf8");
const table = /^const WORDS = (\\{{[^]*?^\\}});/m.exec(source)[1];
console.log(JSON.stringify(new Function("return " + table)()));
"""
