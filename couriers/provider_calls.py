"""The calls of an attempt to its provider: announced before they are sent, noted, without secrets (D-48).

The clients note each call with `noted_call`; outside an attempt that costs nothing and keeps nothing. Secrets,
addresses and texts are hidden in the provider's words. A request that must be announced is so when it has its
connection, and before anything of it is sent. The list of calls and the announcement are context variables, because the
libraries between a courier and its client pass nothing through.
"""

import base64
import html
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from core.errors import SetupError

HIDDEN = "…"
MOST_CALLS = 12
"""Of one attempt: the first ones, and the last."""
LONGEST_WORDS = 300
_READ = 4000
"""Characters of an answer that are looked at."""
_REMEMBERED = 500
_SHORTEST_SECRET = 3
_SHORTEST_PRIVATE = 4


def http_url(setting: str, text: str) -> URL:
    """Return the address of a provider, parsed. Raises SetupError if it is not an HTTP URL."""
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise SetupError(f"{setting} is not a URL: it must begin with http:// or https://")
    return url


class NotedCall:
    """One call to a provider. The client writes what came back: `status` 0 and `words` "" until then."""

    __slots__ = ("ended", "method", "started", "status", "words")

    def __init__(self, method: str) -> None:
        self.method = method
        self.status = 0
        self.words = ""
        self.started = self.ended = time.monotonic()

    def answered(self, status: int, words: str = "") -> None:
        self.status, self.words = status, words


_calls: ContextVar[list[NotedCall] | None] = ContextVar("calls", default=None)


@contextmanager
def noting_calls() -> Iterator[list[NotedCall]]:
    """Collect the calls that this block makes, in their order."""
    calls: list[NotedCall] = []
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


@contextmanager
def noted_call(method: str) -> Iterator[NotedCall]:
    """Note a call. Without an answer its words are the name of the fault: the fault's text may have the token."""
    call = NotedCall(method)
    if (calls := _calls.get()) is not None:
        del calls[MOST_CALLS - 1 :]
        calls.append(call)
    try:
        yield call
    except BaseException as fault:
        call.words = call.words or type(fault).__name__
        raise
    finally:
        call.ended = time.monotonic()


Announce = Callable[[], Awaitable[None]]

_announcement: ContextVar[Announce | None] = ContextVar("announcement", default=None)


@contextmanager
def announcing(announce: Announce) -> Iterator[None]:
    """Announce each request of this block; what `announce` raises is raised by the request, which is not sent then."""
    token = _announcement.set(announce)
    try:
        yield
    finally:
        _announcement.reset(token)


class AnnouncingConnector(aiohttp.TCPConnector):
    """Resolving, connecting, TLS and the wait for a free connection come before the announcement."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if announce := _announcement.get():
            try:
                await announce()
            except BaseException:  # also a cancellation: the connection is free again
                connection.release()
                raise
        return connection


_TAG = re.compile(r"<[^<>]{0,400}>")
_NAMES = r"([\w-]*(?:token|passw(?:or)?d|secret|api[_-]?key|apikey|signature|authorization|psw|pwd|парол[ья]|токен))"
_VALUE = r"[^\s\"'&,;<>]+"
_PATTERNS = (
    (re.compile(r"(://)[^/\s@\"'<>]*@"), r"\1" + HIDDEN + "@"),
    (re.compile(r"([a-z][a-z0-9+.-]*://[^\s?\"'<>]+)\?[^\s\"'<>]*", re.IGNORECASE), r"\1?" + HIDDEN),
    (
        re.compile(
            rf"{_NAMES}(\\?[\"']?\s*=\s*\\?[\"']?|\\?[\"']\s*:\s*\\?[\"']?){_VALUE}",
            re.IGNORECASE,
        ),
        r"\1\2" + HIDDEN,
    ),
    # Behind a colon in a sentence ("the token: check …") only what has a digit is a value.
    (re.compile(rf"{_NAMES}(\s*:\s*(?:bearer\s+|basic\s+)?)(?=\S*\d){_VALUE}", re.IGNORECASE), r"\1\2" + HIDDEN),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE), r"\1 " + HIDDEN),
    (re.compile(r"\b\d{5,}:[\w-]{20,}"), HIDDEN),  # a token of the Bot API
    # A long run of letters and digits is a key, unless it is a name in capitals such as FLOOD_TEST_PHONE_WAIT_120.
    (re.compile(r"(?![A-Z0-9]+(?:_[A-Z0-9]+)+\b)(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-zA-Z])[\w+/=-]{24,}"), HIDDEN),
)


_SECRET_NAME = re.compile("token|password|secret|hash|session|key")


def secrets_of(settings: Any) -> tuple[str, ...]:
    """Return the secrets in the settings of an account, a dataclass: tokens, passwords, and what its URLs have of
    either. A name and a password also as one text, as the header `Authorization` has them.
    """
    values = {one.name: str(value) for one in fields(settings) if (value := getattr(settings, one.name)) is not None}
    found = [value for name, value in values.items() if _SECRET_NAME.search(name)]
    pairs = [(values.get("username", ""), values.get("password", ""))]
    for value in values.values():
        with suppress(ValueError):
            split = urlsplit(value) if "://" in value else urlsplit("")
            pairs.append((unquote(split.username or ""), unquote(split.password or "")))
            found += [text for name, text in parse_qsl(split.query) if _SECRET_NAME.search(name)]
    for name, password in pairs:
        found += (password, f"{name}:{password}") if password else ()
    return tuple(filter(None, found))


class WordFilter:
    """Hides the secrets of an account. `secrets`: its tokens and passwords, as its settings name them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {form for secret in secrets for form in _forms(secret) if len(form) >= _SHORTEST_SECRET}
        self._known = _one_of(known)
        self._cleaned: dict[str, str] = {}

    def clean(self, words: str, private: Iterable[str] = ()) -> str:
        """Return one line of at most LONGEST_WORDS characters without secrets, tokens, keys in URLs, and without what
        is `private` to a message: its address and text.
        """
        if not words:
            return ""
        is_cut, words = len(words) > _READ, words[:_READ]
        for form in (form for one in private for form in _private_forms(one)):
            words = words.replace(form, HIDDEN)
        words = self._without_secrets(words)
        if is_cut:  # the beginning of a secret may stand at the cut
            words = words[: min(LONGEST_WORDS, _READ // 2)].rpartition(" ")[0]
        return words if len(words) <= LONGEST_WORDS else f"{words[: LONGEST_WORDS - 1]}{HIDDEN}"

    def _without_secrets(self, words: str) -> str:
        """Return one line without secrets. Many messages fail with the same words: these are remembered."""
        if (known := self._cleaned.get(words)) is not None:
            return known
        cleaned = self._hide(words)
        if cleaned.lstrip().startswith("<"):
            cleaned = self._hide(_TAG.sub(" ", cleaned))
        cleaned = "".join(letter if letter.isprintable() else " " for letter in cleaned)
        if len(self._cleaned) >= _REMEMBERED:
            self._cleaned.clear()
        self._cleaned[words] = cleaned = " ".join(cleaned.split())
        return cleaned

    def _hide(self, words: str) -> str:
        if self._known is not None:
            words = self._known.sub(HIDDEN, words)
        for pattern, replacement in _PATTERNS:
            words = pattern.sub(replacement, words)
        return words


def _one_of(texts: Iterable[str]) -> "re.Pattern[str] | None":
    """Return a pattern of any of these texts, the longest first."""
    known = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, known)), re.IGNORECASE) if known else None


def _forms(secret: str) -> Iterator[str]:
    """Emit a secret as answers repeat it: as it is, in a URL, in JSON, in HTML, in base64; and the part of a token
    behind its colon.
    """
    part = secret.rpartition(":")[2]
    for text in {secret, part if len(part) >= 8 else secret}:
        yield from (text, quote(text), quote(text, safe=""), quote_plus(text), html.escape(text))
        yield from (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
        encoded = text.encode(errors="surrogatepass")
        yield from (
            form.decode().rstrip("=") for form in (base64.b64encode(encoded), base64.urlsafe_b64encode(encoded))
        )


def _private_forms(text: str) -> Iterator[str]:
    """Emit the address or text of a message, and each of its lines, as answers repeat them."""
    for line in dict.fromkeys((text, text.strip(), *text.splitlines())):
        if len(line) >= _SHORTEST_PRIVATE:
            yield line
            if not line.isalnum():
                yield from (quote(line), quote_plus(line), html.escape(line), line.removeprefix("+"))
            if not line.isascii():
                yield from (quote(line), json.dumps(line)[1:-1])
