"""The client of MAX's Bot API: one call, with MAX's answer as it is, or with its errors as exceptions; its settings.

A call is made once. aiohttp itself repeats only a GET, PUT or DELETE whose connection ends before the answer; those
change nothing, or have the same effect twice. No text of an error contains the token.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp

from core.errors import SetupError
from core.sentence import sentence
from couriers.max import API_URL
from couriers.provider_calls import AnnouncingConnector, http_url, noted_call
from providers.web_request import tls_context


@dataclass(frozen=True)
class Settings:
    """`ca`: the file with the root of MAX's certificate, which Python does not know."""

    token: str = field(repr=False)
    api_url: str = API_URL
    ca: Path | None = None
    timeout: timedelta = timedelta(seconds=30)  # of one request; after it the outcome is unknown
    webhook_url: str | None = field(default=None, metadata={"setting": "ADA_MAX_WEBHOOK_URL"})
    webhook_secret: str | None = field(default=None, repr=False, metadata={"setting": "ADA_MAX_WEBHOOK_SECRET"})
    most_file_mb: int = 50  # of one attachment; a larger one is not shown
    allow_private: bool = field(default=False, metadata={"setting": "ADA_WEBHOOK_ALLOW_PRIVATE"})  # addresses of files

    def __post_init__(self) -> None:
        http_url("ADA_MAX_API_URL", self.api_url)


TOKEN_REFUSED = sentence("halt_token", provider="MAX", setting="ADA_MAX_TOKEN")

Json = dict[str, Any]


class NotJson(ValueError):
    """The response is not JSON: usually the error page of a proxy."""


class MaxUnavailable(Exception):
    """MAX cannot be reached, or has no time now. `is_throttle`: it asks for a pause, of `after` seconds unless 0."""

    def __init__(self, message: str, *, is_throttle: bool = False, after: float = 0.0) -> None:
        super().__init__(message)
        self.is_throttle = is_throttle
        self.after = after


class MaxRefused(Exception):
    """MAX refuses this call. `code`: its code for it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


class MaxTokenRefused(Exception):
    """The token was withdrawn; only an operator can help."""


def error_of(body: Any) -> tuple[str, str]:
    """Return the code and the message of an error, which may come with status 200; "" for both if there is none."""
    if not isinstance(body, Mapping):
        return "", ""
    code, message = body.get("code") or body.get("error"), body.get("message")
    return (code, message if isinstance(message, str) else "") if isinstance(code, str) else ("", "")


FAILURES = (aiohttp.ClientError, OSError, NotJson)
"""The errors of a call that has no response of MAX. TimeoutError is an OSError."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`body`: decoded JSON. `retry_after`: the header in seconds, None if there is none."""

    status: int
    body: Any
    retry_after: int | None = None


class MaxClient:
    """The client of one bot. Safe for concurrent calls. Raises SetupError for a malformed address or a `ca` that cannot
    be read.
    """

    def __init__(
        self, token: str, api_url: str = API_URL, timeout: timedelta = timedelta(seconds=20), ca: Path | None = None
    ) -> None:
        self._url = http_url("ADA_MAX_API_URL", api_url)
        self._headers = {"Authorization": token}
        self._seconds = timeout.total_seconds()
        self._tls = tls_context(ca, "ADA_MAX_CA")
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Json | None = None, wait: float = 0
    ) -> Answer:
        """Make a call. `wait`: seconds that MAX may hold it, for a long poll. Raises one of FAILURES."""
        limits = aiohttp.ClientTimeout(total=self._seconds + wait, connect=self._seconds / 3)
        with noted_call(f"{method} /{path}") as call:
            # A redirect would take the token to another host.
            async with self._open().request(
                method,
                self._url / path,
                params=query,
                json=body,
                headers=self._headers,
                timeout=limits,
                allow_redirects=False,
            ) as response:
                text = await response.text(errors="replace")
                call.answered(response.status, text)
                answer = Answer(response.status, _decoded(text, response.status), _seconds(response.headers))
                call.answered(response.status, ": ".join(filter(None, error_of(answer.body))))
                return answer

    async def call(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Json | None = None, wait: float = 0
    ) -> Json:
        """Make a call and return its result. Raises MaxUnavailable, MaxRefused, TokenRefused."""
        try:
            answer = await self.request(method, path, query, body, wait)
        except FAILURES as error:
            raise unreachable(error) from None
        code, detail = error_of(answer.body)
        if answer.status == 401 or code == "verify.token":
            raise MaxTokenRefused(TOKEN_REFUSED)
        if answer.status == 429 or answer.status >= 500:
            text = f"{method} /{path}: {answer.status} {code}".rstrip()
            raise MaxUnavailable(text, is_throttle=answer.status == 429, after=answer.retry_after or 0)
        if code or answer.status != 200 or not isinstance(answer.body, dict):
            raise MaxRefused(code or str(answer.status), detail)
        return answer.body

    async def upload(self, url: str, name: str, media_type: str, data: bytes) -> Answer:
        """Transfer a file to an address that MAX named: another host, which does not get the token. Raises one of
        FAILURES.
        """
        form = aiohttp.FormData(quote_fields=False)  # names have no quotation marks, and arrive as they are
        form.add_field("data", data, filename=name, content_type=media_type)
        with noted_call("upload") as call:
            async with self._open().post(url, data=form, timeout=aiohttp.ClientTimeout(total=300)) as response:
                text = await response.text(errors="replace")
                call.answered(response.status, "" if response.status == 200 else text)
                return Answer(response.status, text if text.startswith("<") else _decoded(text, response.status))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        """Return the session, made at the first call: it belongs to the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=AnnouncingConnector(limit=0, ssl=self._tls),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "Ada/1"},
            )
        return self._session


async def check_token(client: MaxClient) -> Json:
    """Return what MAX says about the bot. Raises SetupError, whose text says what to change."""
    try:
        me = await client.call("GET", "me")
    except MaxTokenRefused as refusal:
        raise SetupError(str(refusal)) from None
    except (MaxUnavailable, MaxRefused) as fault:
        raise SetupError(f"MAX does not sign in this bot now ({fault}): a new bot waits for its moderation") from None
    if not isinstance(me.get("user_id"), int):
        raise SetupError("MAX does not answer as expected: check ADA_MAX_API_URL")
    return me


def unreachable(error: Exception) -> MaxUnavailable:
    """Return the fault of a call without an answer. The error's own text is left out: it can contain an address."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return MaxUnavailable("MAX's certificate is not trusted: set ADA_MAX_CA to the file of its root")
    return MaxUnavailable(f"MAX cannot be reached ({type(error).__name__}): check the network and ADA_MAX_API_URL")


def _decoded(text: str, status: int) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotJson(f"{status}") from error


def _seconds(headers: Mapping[str, str]) -> int | None:
    asked = headers.get("Retry-After", "")
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 6 else None
