"""The files of the web console: `/` and everything below `/console/<tree>/`.

`<tree>` is the hash of all files, so an address is valid for one version of all of them: browsers keep a file for ever,
relative imports need no rewriting, and a new version is loaded as a whole. Files are read and made smaller once, and
compressed when a browser first asks for them: comments before functions and spaces that mean nothing are not sent, and
the words stand in groups. Those of the first pages name the channels that are installed. What the refusals of the API
mean is said in Russian by core, in English by the API itself.
"""

import functools
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import takewhile

import brotli
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.model.contacts.addresses import channel_titles
from core.sentence import problems_of_pages
from delivery.api.pages import HTML
from delivery.http.context import ApiContext
from delivery.http.responses.middleware import no_route
from delivery.http.route import OpenRoute, Routes

PATH = "/console/{tree}/{rest}"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",  # the words
    "svg": "image/svg+xml",
}
_SAFE = {
    hdrs.CONTENT_SECURITY_POLICY: CONTENT_SECURITY_POLICY,
    hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
    "Referrer-Policy": "no-referrer",
    hdrs.VARY: hdrs.ACCEPT_ENCODING,
}
_LANGUAGES = ("en", "ru")
_FOR_EVER = "public, max-age=31536000, immutable"
_COMMENT = re.compile(rb"^ */\*\*.*?\*/\n", re.DOTALL | re.MULTILINE)
_LINE_COMMENT = re.compile(rb"^ *(?://.*|/\*.*\*/)\n", re.MULTILINE)
_INDENTATION = re.compile(rb"^ +", re.MULTILINE)
_STRINGS = rb"""`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
_EXPRESSION = rb"""/(?![/*\s])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/"""
_SPACES = re.compile(rb"(" + _STRINGS + rb"|" + _EXPRESSION + rb")|//.*| *([{}()\[\],;:=<>?&|]+) *")
_BREAKS = re.compile(rb"(?<=[;{,(\[\n])\n+|\n+(?=[)\]}?:.&|])")
"""Literals, which stay; comments, spaces around punctuation and line breaks beside it or where an
expression goes on, which go. A division has a space behind its sign, a regular expression has none at its beginning.
"""
_CSS_SPACES = re.compile(rb'("[^"\n]*")|\s*([{};,]|:(?=\s))\s*')
"""Strings of a style, which stay, and spaces that mean nothing; a colon with a space behind it ends the name of a
property.
"""
ON_FIRST_PAGES = (
    *("ACCOUNT_BLOCKED", "CODE_WRONG", "CROSS_SITE", "KEY_UNKNOWN", "LINK_USED", "MAIL_NOT_SET_UP", "MAIL_UNAVAILABLE"),
    *("NOT_FOR_PEOPLE", "PROVIDER_NOT_FOUND", "RATE_EXCEEDED", "SCOPE_MISSING", "SESSION_ENDED", "SIGN_IN_FAILED"),
    *("SIGN_IN_REFUSED", "SIGN_IN_UNKNOWN", "STORE_FULL", "STORE_UNAVAILABLE", "TOO_MANY_GUESSES", "TOO_MANY_MAILS"),
)
"""The codes of the refusals that the first pages can meet."""
_FORMS = ("one", "few", "many", "other")
"""Of plurals, in the order in which they are sent."""
_PLACE_OF_TREE = b"{{tree}}"
"""Stands in index.html for the hash."""


@dataclass(frozen=True)
class ConsoleFile:
    """A file as it is sent: plain or compressed, with its headers."""

    plain: bytes
    headers: Mapping[str, str]

    @cached_property
    def with_brotli(self) -> bytes:
        """An eighth smaller than gzip; browsers accept it over TLS and from localhost."""
        return bytes(brotli.compress(self.plain))

    @cached_property
    def gzipped(self) -> bytes:
        return gzip.compress(self.plain, mtime=0)

    def respond(self, request: web.Request) -> web.Response:
        """Return the file in the smallest form that the browser accepts."""
        accepted = {one.partition(";")[0].strip() for one in request.headers.get(hdrs.ACCEPT_ENCODING, "").split(",")}
        if "br" in accepted:
            return web.Response(body=self.with_brotli, headers={**self.headers, hdrs.CONTENT_ENCODING: "br"})
        if "gzip" in accepted:
            return web.Response(body=self.gzipped, headers={**self.headers, hdrs.CONTENT_ENCODING: "gzip"})
        return web.Response(body=self.plain, headers=self.headers)


@dataclass(frozen=True, slots=True)
class ConsoleFiles:
    """All files of the console. `files` does not contain the pages that stand at addresses of their own."""

    tree: str
    pages: Mapping[str, ConsoleFile]
    files: Mapping[str, ConsoleFile]


@functools.cache
def console_files() -> ConsoleFiles:
    """Return the files of `delivery/console/static/`."""
    contents = dict(sorted(_read(resources.files(__package__).joinpath("static"))))
    for language in _LANGUAGES:
        contents[f"words/{language}.json"] = _with_channels(contents[f"words/{language}.json"], language)
    problems = dict(problems_of_pages("ru"))
    first = {f"problem.{code}": problems.pop(f"problem.{code}") for code in ON_FIRST_PAGES}
    contents["words/ru.json"] = _with_words(contents["words/ru.json"], first)
    contents["words/pages/ru.json"] = _with_words(contents["words/pages/ru.json"], problems)
    tree = _hash(contents)
    pages, files = {}, {}
    for name, content in contents.items():
        if name.endswith(".html"):
            pages[name] = _console_file(name, content.replace(_PLACE_OF_TREE, tree.encode()), "no-cache")
        else:
            files[name] = _console_file(name, _lean(name, content), _FOR_EVER)
    return ConsoleFiles(tree, pages, files)


def _read(folder: Traversable, prefix: str = "") -> Iterable[tuple[str, bytes]]:
    """Yield the name and the content of every file of the folder and the folders in it."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read(entry, f"{prefix}{entry.name}/")
        elif entry.name.rpartition(".")[2] in _TYPES:
            yield prefix + entry.name, entry.read_bytes()


def _with_channels(content: bytes, language: str) -> bytes:
    """Return words with the names of the channels."""
    return _with_words(content, {f"channel.{name}": title for name, title in channel_titles(language).items()})


def _with_words(content: bytes, more: Mapping[str, str]) -> bytes:
    return json.dumps(dict(sorted({**more, **json.loads(content)}.items()))).encode()


def _lean(name: str, content: bytes) -> bytes:
    """Return what browsers need of a file. No text in a script has several lines, so indentation is never a part of
    one.
    """
    if name.endswith(".json"):
        return _grouped(json.loads(content))
    if not name.endswith((".js", ".css")):
        return content
    for unneeded in (_COMMENT, _LINE_COMMENT, _INDENTATION):
        content = unneeded.sub(b"", content)
    if name.endswith(".css"):
        return _CSS_SPACES.sub(rb"\1\2", content)
    return _BREAKS.sub(b"", _SPACES.sub(rb"\1\2", content)).replace(b";}", b"}")


def _grouped(words: Mapping[str, str | Mapping[str, str]]) -> bytes:
    """Return `{"write.send": …}` as `{"write": {"send": …}}`; of plural forms what differs."""
    groups: dict[str, dict[str, object]] = {}
    for key, word in words.items():
        group, _, rest = key.partition(".")
        groups.setdefault(group, {})[rest] = word if isinstance(word, str) else _packed(word)
    return json.dumps(groups, ensure_ascii=False, separators=(",", ":")).encode()


def _packed(plural: Mapping[str, str]) -> list[str]:
    """Return what stands before and behind the difference of the forms, and the difference in each, in their order."""
    texts = [plural[form] for form in _FORMS if form in plural]
    before = _beginning(texts)
    rest = [text.removeprefix(before) for text in texts]
    behind = _beginning([text[::-1] for text in rest])[::-1]
    return [before, behind, *(text.removesuffix(behind) for text in rest)]


def _beginning(texts: Sequence[str]) -> str:
    """Return how all texts begin."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False))
    return "".join(letters[0] for letters in same)


def _hash(contents: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(b"%s\0%d\0%s" % (name.encode(), len(content), content))
    return digest.hexdigest()[:16]


def _console_file(name: str, content: bytes, cache_control: str) -> ConsoleFile:
    content_type = _TYPES[name.rpartition(".")[2]]
    headers = {hdrs.CONTENT_TYPE: content_type, hdrs.CACHE_CONTROL: cache_control, **_SAFE}
    return ConsoleFile(content, headers)


def index(context: ApiContext) -> Handler:
    """Return the handler of the page that loads the console."""
    return _page("index.html")


def _page(name: str) -> Handler:
    page = console_files().pages[name]

    async def handle(request: web.Request) -> web.Response:
        return page.respond(request)

    return handle


async def serve(request: web.Request) -> web.StreamResponse:
    """Respond with a file of the console. The addresses of another version are unknown, never another content."""
    served = console_files()
    file = served.files.get(request.match_info["rest"])
    if file is None or request.match_info["tree"] != served.tree:
        return await no_route(request)
    return file.respond(request)


ROUTES: Routes = (
    OpenRoute("GET", "/", "The web console", index, HTML),
)  # fmt: skip
