"""The client of the Bot API: aiogram's `Bot` and its methods, with an HTTP session of Ada's own.

aiogram's own session follows redirects, which take the token along, shows the token in the texts of network errors,
leaves out empty texts and sleeps when it is closed. Neither session repeats a call. The reasons:
docs/decisions/0158-the-libraries-of-the-field-are-used-at-run-time.md. Every SetupError names what to change and shows
no token.
"""

import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import IO, Any, cast

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    FormData,
)
from pydantic import ValidationError
from yarl import URL

from core.errors import SetupError
from core.model.user_files import safe_name
from core.sentence import sentence
from couriers.provider_calls import AnnouncingConnector, http_url, noted_call
from couriers.telegram_bot import API_URL, TOKEN_REFUSED, BotCallFailed, BotCallRefused, CallThrottled
from couriers.telegram_bot.library import (
    BaseSession,
    Bot,
    Response,
    TelegramAPIServer,
    TelegramMethod,
    build,
    exceptions,
    methods,
    types,
)

FAILURES = (exceptions.AiogramError, OSError)
"""The errors that a call raises; OSError if a file to upload cannot be read."""

WRONG_TOKEN = (exceptions.TelegramUnauthorizedError, exceptions.TelegramNotFound)
"""There is no bot with this token."""

REFUSALS = (exceptions.TelegramBadRequest, exceptions.TelegramForbiddenError)
"""The call, the chat or the message is wrong, or the bot may not write there."""

_NO_ANSWER = (ClientError, TimeoutError, ConnectionError)
_NEVER_MADE = (ClientConnectorError, ConnectionTimeoutError)


class NoAnswer(exceptions.TelegramNetworkError):
    """There is no answer. `message`: the name of the fault. `is_sent`: whether the call may have been received."""

    def __init__(self, method: TelegramMethod[Any], fault: Exception) -> None:
        super().__init__(method=method, message=type(fault).__name__)
        self.is_sent = not isinstance(fault, _NEVER_MADE)


class TopicNotMade(NoAnswer):
    """It is not known whether a topic was made: the message for it was not sent."""

    def __init__(self, method: TelegramMethod[Any], fault: Exception) -> None:
        super().__init__(method, fault)
        self.is_sent = False


class Unreadable(exceptions.ClientDecodeError):
    """The answer is not one of the Bot API, for example the page of a proxy."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, ValueError(), "")


_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+")


class BotClient:
    """The client of one bot. Calls nothing by itself; safe for concurrent calls. `timeout`: of one call; a third of
    it for making the connection. Raises SetupError if the token or the URL is malformed.
    """

    def __init__(self, token: str, api_url: str = "", timeout: timedelta = timedelta(seconds=15)) -> None:
        self._session = _Session(http_url("ADA_BOT_API_URL", api_url or API_URL), timeout)
        if not _TOKEN.fullmatch(token):  # it is a part of the URL
            raise SetupError("ADA_BOT_TOKEN is not a token: @BotFather shows it, for example 123456:ABC…")
        self._bot = Bot(token, session=self._session)
        self.id = self._bot.id
        self.token = token

    async def __call__(self, method: TelegramMethod[Any]) -> Any:
        """Return the result of a method as JSON. A long poll may last longer than other calls. Raises FAILURES."""
        return await self._bot(method)

    def read(self, status: int, body: bytes) -> Any:
        """Return the result in an answer. Raises AiogramError."""
        return self._session.read(self._bot, status, body)

    async def download(self, path: str, target: IO[bytes]) -> None:
        """Write the file that getFile names. Raises FAILURES, and what `target` raises."""
        await self._bot.download_file(path, cast(Any, target), timeout=300, seek=False)

    async def close(self) -> None:
        await self._session.close()


class _Result(TelegramMethod[Any]):
    """Stands for the called method when an answer is checked, so that its result stays JSON. A result that aiogram's
    types cannot read would make a message that was sent unknown, and one update would keep all others back.
    """

    __returning__ = Any
    __api_method__ = ""


_RESULT = _Result()


class _Session(BaseSession):
    def __init__(self, url: URL, timeout: timedelta) -> None:
        super().__init__(
            api=TelegramAPIServer.from_base(str(url)),
            json_loads=_decoded,
            json_dumps=partial(json.dumps, ensure_ascii=False),
            timeout=timeout.total_seconds(),
        )
        self._http: ClientSession | None = None

    async def make_request(self, bot: Bot, method: TelegramMethod[Any], timeout: int | None = None) -> Any:
        url = self.api.api_url(bot.token, method.__api_method__)
        held = (method.timeout or 0) if isinstance(method, methods.GetUpdates) else 0
        limits = ClientTimeout(total=timeout or self.timeout + held, connect=self.timeout / 3)
        try:
            with noted_call(method.__api_method__) as call:
                async with self._open().post(
                    url, data=self._form(bot, method), timeout=limits, allow_redirects=False
                ) as response:
                    status, body = response.status, await response.read()
                    call.answered(status, "" if status == 200 else _words_of(body))
        except _NO_ANSWER as fault:
            raise NoAnswer(method, fault) from None
        return self.read(bot, status, body)

    def _form(self, bot: Bot, method: TelegramMethod[Any]) -> FormData:
        """Return the parameters of a call. `False` and empty values are sent, too."""
        form, files = FormData(quote_fields=False), dict[str, types.InputFile]()
        for name, value in method.model_dump(warnings=False).items():
            if (text := self.prepare_value(value, bot, files)) is not None:
                form.add_field(name, text)
        for name, file in files.items():
            form.add_field(name, file.read(bot), filename=safe_name(file.filename or name))
        return form

    def read(self, bot: Bot, status: int, body: bytes) -> Any:
        try:
            answer: Response[Any] = self.check_response(bot, _RESULT, status, body.decode())
        except (exceptions.ClientDecodeError, UnicodeDecodeError):  # their texts have the answer, perhaps the token
            raise Unreadable(f"status {status}") from None
        if answer.result is None:
            raise Unreadable("no result")
        return answer.result

    async def stream_content(
        self,
        url: str,
        headers: dict[str, Any] | None = None,
        timeout: int = 30,
        chunk_size: int = 65536,
        raise_for_status: bool = True,
    ) -> AsyncGenerator[bytes, None]:
        limits = ClientTimeout(total=timeout, connect=self.timeout / 3)
        try:
            async with self._open().get(url, timeout=limits, allow_redirects=False) as response:
                if response.status != 200:
                    raise Unreadable(f"status {response.status}")
                async for chunk in response.content.iter_chunked(chunk_size):
                    yield chunk
        except _NO_ANSWER as fault:
            raise NoAnswer(methods.GetFile(file_id=""), fault) from None

    def _open(self) -> ClientSession:
        """Return the connections, made at the first call: they belong to the running event loop."""
        if self._http is None:
            self._http = ClientSession(
                connector=AnnouncingConnector(), cookie_jar=DummyCookieJar(), headers={"User-Agent": "Ada/1"}
            )
        return self._http

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()


def _decoded(text: str) -> Any:
    """Return a decoded answer. aiogram needs a description that is a text and hints that are numbers, not 0."""
    answer = json.loads(text)
    if isinstance(answer, dict):
        answer["description"] = str(answer.get("description") or answer.get("error_code") or "no description")
        hints = answer.get("parameters")
        hints = hints.items() if isinstance(hints, dict) else ()
        answer["parameters"] = {name: value or 1 for name, value in hints if isinstance(value, int)}
    return answer


def _words_of(body: bytes) -> str:
    """Return Telegram's description of an error, or what the answer is in its place."""
    text = body.decode(errors="replace")
    try:
        return str(json.loads(text)["description"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return text


async def check_token(client: BotClient) -> str:
    """Return the bot's id; it is the account. Raises SetupError."""
    with setup_errors():
        me = await client(methods.GetMe())
        if not isinstance(me, dict) or not isinstance(me.get("id"), int):
            raise Unreadable("getMe")
    return str(me["id"])


@contextmanager
def setup_errors() -> Iterator[None]:
    """Turn what a call raises into a SetupError."""
    try:
        yield
    except WRONG_TOKEN:
        raise SetupError(TOKEN_REFUSED) from None
    except NoAnswer as error:
        raise SetupError(
            f"the Bot API cannot be reached ({error.message}): check the network and ADA_BOT_API_URL"
        ) from None
    except exceptions.AiogramError as error:
        name = type(error).__name__
        raise SetupError(f"the Bot API does not answer as expected ({name}): check ADA_BOT_API_URL") from None


class NamedCalls:
    """The calls of one bot. No text of an error has the token. Raises SetupError as `BotClient` does."""

    def __init__(self, token: str, api_url: str = "") -> None:
        self._client = BotClient(token, api_url)
        self.id = self._client.id

    async def call(self, name: str, /, **parameters: Any) -> Any:
        """Return the result of a method, as JSON. Raises BotCallFailed."""
        with self._call_errors():
            method = build(getattr(methods, name[:1].upper() + name[1:]))
            return await self._client(method(**parameters))

    async def download(self, path: str, target: IO[bytes]) -> None:
        """Write the file that getFile names. Raises BotCallFailed, and what `target` raises."""
        with self._call_errors():
            await self._client.download(path, target)

    async def close(self) -> None:
        await self._client.close()

    @contextmanager
    def _call_errors(self) -> Iterator[None]:
        try:
            yield
        except exceptions.TelegramRetryAfter as error:
            text = sentence("telegram_asks_to_wait", seconds=error.retry_after)
            raise CallThrottled(text, error.retry_after) from None
        except NoAnswer as error:
            raise BotCallFailed(sentence("telegram_unreachable", why=error.message)) from None
        except REFUSALS as error:
            raise BotCallRefused(self._shown(error.message)) from None
        except exceptions.TelegramAPIError as error:
            raise BotCallFailed(self._shown(error.message)) from None
        except exceptions.AiogramError as error:
            raise BotCallFailed(sentence("telegram_unreachable", why=type(error).__name__)) from None
        except ValidationError as error:
            places = {".".join(map(str, one["loc"])) for one in error.errors()}
            raise BotCallRefused(f"the Bot API does not take this: {', '.join(sorted(places))}") from None

    def _shown(self, description: str) -> str:
        """Return the first line, which has what aiogram says of a group that has moved."""
        return description.partition("\n")[0].replace(self._client.token, "…")
