"""Posts to the HTTP API of a service, within limits of time and size, and repeats what may succeed later.

A throttled request (429), a failure of the server (5xx) and a lost connection are repeated a few times with growing
pauses, or after the pause that the service names. A request that was not answered in time is not repeated. No redirect
is followed: the key belongs to this address only. Neither keys nor texts are in errors or logs.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from core.model.clock import Backoff
from providers.models.interface import AiAnswerInvalid, AiError, AiRefused, AiUnavailable
from providers.web_request import tls_context

BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=8), attempts=4)
LONGEST_WAIT = 30
"""Seconds that a service may ask us to wait; after a longer one a later call is better."""

MOST_JSON = 2**18
MOST_SOUND = 2**25
_LONGEST_COMPLAINT = 200
_REPEATED = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One POST. `body` makes the arguments of aiohttp, `json` or `data`, anew for each attempt."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: Callable[[], Mapping[str, Any]] = field(repr=False)
    most_bytes: int = MOST_JSON
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The response of a service. `wait`: seconds that it asked for in Retry-After; None if it did not."""

    status: int
    body: bytes
    wait: int | None = None


class ModelHttpClient:
    """Calls one service. `service` is its name in errors, `key_setting` the setting to correct if its key is refused.

    `time_limit` is that of each attempt. `ca`: a file with certificates to trust beside the system's.
    """

    def __init__(
        self,
        service: str,
        key_setting: str,
        time_limit: timedelta,
        ca: Path | None = None,
        backoff: Backoff = BACKOFF,
    ) -> None:
        """Prepare the connections. Raises SetupError if the file with certificates cannot be read."""
        self._service, self._key_setting, self._backoff = service, key_setting, backoff
        self._time_limit = aiohttp.ClientTimeout(total=time_limit.total_seconds())
        self._tls = tls_context(ca, "ADA_SPEECH_CA")
        self._session: aiohttp.ClientSession | None = None

    async def post(self, request: ModelRequest) -> bytes:
        """Return the body of a successful answer. Raises AiError."""
        attempt = 1
        while True:
            outcome = await self._attempt(request)
            if isinstance(outcome, ModelAnswer) and outcome.status == 200:
                return outcome.body
            if isinstance(outcome, ModelAnswer) and outcome.status not in _REPEATED:
                raise self._refusal(outcome)
            wait = outcome.wait if isinstance(outcome, ModelAnswer) else None
            if self._backoff.spent(attempt) or (wait or 0) > LONGEST_WAIT:
                raise self._gave_up(outcome)
            await asyncio.sleep(self._backoff.pause(attempt).total_seconds() if wait is None else wait)
            attempt += 1

    async def post_json(self, request: ModelRequest) -> Any:
        """Return the JSON of a successful answer. Raises AiError."""
        body = await self.post(request)
        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError:
            raise self.invalid("it is not JSON") from None

    def invalid(self, reason: str) -> AiAnswerInvalid:
        return AiAnswerInvalid("ANSWER_INVALID", f"the answer of {self._service} cannot be used: {reason}")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _attempt(self, request: ModelRequest) -> ModelAnswer | str:
        """Return the answer, or why there is none. Raises AiError if another attempt is of no use."""
        try:
            return await self._exchange(request)
        except TimeoutError:
            seconds = self._time_limit.total or 0
            detail = f"{self._service} did not answer within {seconds:g} s"
            raise AiUnavailable("SERVICE_TIMEOUT", detail) from None
        except aiohttp.ClientConnectorCertificateError:
            detail = f"the certificate of {self._service} is not trusted"
            raise AiUnavailable("CERTIFICATE_REFUSED", detail) from None
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            raise AiRefused("ADDRESS_INVALID", f"the address of {self._service} is not a URL") from None
        except (aiohttp.ClientError, OSError) as fault:
            return type(fault).__name__

    async def _exchange(self, request: ModelRequest) -> ModelAnswer:
        headers = {**request.headers, "Accept-Encoding": "identity"}
        async with self._open().post(
            request.url, params=request.query, headers=headers, allow_redirects=False, **request.body()
        ) as response:
            body = await self._read(response, request.most_bytes)
            return ModelAnswer(response.status, body, _wait_of(response))

    async def _read(self, response: aiohttp.ClientResponse, most: int) -> bytes:
        parts, size = [], 0
        async for part in response.content.iter_any():
            size += len(part)
            if size > most:
                response.close()
                raise self.invalid(f"it is longer than {most} bytes")
            parts.append(part)
        return b"".join(parts)

    def _refusal(self, answer: ModelAnswer) -> AiError:
        if answer.status in (401, 403):
            return AiRefused("KEY_REFUSED", f"{self._service} refuses the key; set {self._key_setting}")
        return AiRefused("REQUEST_REFUSED", f"{self._service} answered {answer.status}{complaint_of(answer.body)}")

    def _gave_up(self, outcome: ModelAnswer | str) -> AiError:
        if isinstance(outcome, str):
            return AiUnavailable("SERVICE_UNREACHABLE", f"{self._service} cannot be reached ({outcome})")
        if outcome.status == 429:
            return AiUnavailable("SERVICE_THROTTLED", f"{self._service} accepts no more requests now (429)")
        return AiUnavailable("SERVICE_FAILED", f"{self._service} answered {outcome.status}")

    def _open(self) -> aiohttp.ClientSession:
        """Return the session, made at the first call: it belongs to the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._tls),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._time_limit,
                auto_decompress=False,
                headers={"User-Agent": "Ada/1"},
            )
        return self._session


def complaint_of(body: bytes) -> str:
    """Return the message of an error in the usual forms, `{"error": {"message": …}}` and `{"message": …}`,
    shortened."""
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    error = found.get("error", found) if isinstance(found, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return f": {message[:_LONGEST_COMPLAINT]}" if isinstance(message, str) else ""


def _wait_of(response: aiohttp.ClientResponse) -> int | None:
    asked = response.headers.get("Retry-After", "")
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else None
