"""The client of the Bot API: one call, with Telegram's result as it is, or with its errors as exceptions.

A call is one POST of aiohttp, which repeats no POST (docs/decisions/0137-the-bot-api-is-called-with-plain-aiohttp.md).
Every SetupError names what to change and shows no token.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import aiohttp
from yarl import URL

from core.errors import SetupError
from core.model.user_files import safe_name
from providers.announcing_connector import AnnouncingConnector
from providers.telegram_bot import API_URL
from providers.telegram_bot.errors import TOKEN_REFUSED, BotApiError, NoAnswer, Unreadable, WrongToken, error_of

_NEVER_MADE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class Client:
    """The client of one bot. Calls nothing by itself; safe for concurrent calls. `timeout`: of one call; a third of
    it for making the connection. Raises SetupError if the token or the URL is malformed.
    """

    def __init__(self, token: str, api_url: str = "", timeout: timedelta = timedelta(seconds=15)) -> None:
        self.id = _id_in(token)
        self.token = token
        self._server = _parsed(api_url or API_URL)
        self._seconds = timeout.total_seconds()
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self, method: str, files: Mapping[str, Path] | None = None, wait: float = 0, **parameters: Any
    ) -> Any:
        """Return the result of a method. A parameter that is None is left out. `files`: by the names that parameters
        give as attach://name. `wait`: seconds that Telegram may hold the call, for a long poll.

        Raises BotApiError, and OSError for a file that cannot be read.
        """
        given = {name: value for name, value in parameters.items() if value is not None}
        limits = aiohttp.ClientTimeout(total=self._seconds + wait, connect=self._seconds / 3)
        with ExitStack() as opened:
            streams = {name: opened.enter_context(path.open("rb")) for name, path in (files or {}).items()}
            body: dict[str, Any] = {"data": _form(given, streams)} if streams else {"json": given}
            return _result(*await self._post(f"bot{self.token}/{method}", body, limits))

    async def _post(self, path: str, body: Mapping[str, Any], limits: aiohttp.ClientTimeout) -> tuple[int, bytes]:
        try:
            # A redirect would take the token to another host.
            async with self._open().post(
                self._server / path, **body, timeout=limits, allow_redirects=False
            ) as response:
                return response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as fault:
            raise NoAnswer(type(fault).__name__, is_sent=not isinstance(fault, _NEVER_MADE)) from None

    async def download(self, path: str, target: IO[bytes]) -> None:
        """Write the file that getFile names. Raises NoAnswer, and what `target` raises."""
        try:
            async with self._open().get(
                self._server / f"file/bot{self.token}/{path}",
                timeout=aiohttp.ClientTimeout(total=300, connect=self._seconds / 3),
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise Unreadable(f"status {response.status}")
                async for chunk in response.content.iter_chunked(65536):
                    target.write(chunk)
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as fault:
            raise NoAnswer(type(fault).__name__, is_sent=True) from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        """Return the session, made at the first call: it belongs to the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=AnnouncingConnector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "Ada/1"},
            )
        return self._session


async def check_token(client: Client) -> str:
    """Return the bot's id; it is the account. Raises SetupError."""
    with setup_errors():
        me = await client.call("getMe")
        if not isinstance(me, dict) or not isinstance(me.get("id"), int):
            raise Unreadable("getMe")
    return str(me["id"])


@contextmanager
def setup_errors() -> Iterator[None]:
    """Turn what a call raises into a SetupError."""
    try:
        yield
    except WrongToken:
        raise SetupError(TOKEN_REFUSED) from None
    except NoAnswer as error:
        raise SetupError(
            f"the Bot API cannot be reached ({error.cause}): check the network and ADA_BOT_API_URL"
        ) from None
    except BotApiError as error:
        name = type(error).__name__
        raise SetupError(f"the Bot API does not answer as expected ({name}): check ADA_BOT_API_URL") from None


def _id_in(token: str) -> int:
    """Return the bot's id, which is the part before the colon."""
    number, _, secret = token.partition(":")
    if not number.isdecimal() or not secret or any(one.isspace() for one in token):
        raise SetupError("ADA_BOT_TOKEN is not a token: @BotFather shows it, for example 123456:ABC…")
    return int(number)


def _parsed(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise SetupError("ADA_BOT_API_URL is not a URL: it must begin with http:// or https://")
    return url


def _form(parameters: Mapping[str, Any], streams: Mapping[str, IO[bytes]]) -> aiohttp.FormData:
    """Return a multipart body: texts as they are, everything else as JSON."""
    form = aiohttp.FormData(quote_fields=False)
    for name, value in parameters.items():
        form.add_field(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    for name, stream in streams.items():
        form.add_field(name, stream, filename=safe_name(Path(stream.name).name))
    return form


def _result(status: int, raw: bytes) -> Any:
    """Return the result of an answer. Raises BotApiError."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise Unreadable(f"status {status}") from None
    if status == 200 and isinstance(body, dict) and body.get("ok") is True and "result" in body:
        return body["result"]
    raise error_of(status, body)
