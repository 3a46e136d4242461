"""The client of VK's API: vkbottle's, made to repeat nothing and to follow no redirect; its errors; its long poll.

The reasons: docs/decisions/0158-the-libraries-of-the-field-are-used-at-run-time.md. No text of an error contains the
token. 14, 17 and 3300 (captcha, validation) need a person. Source: dev.vk.com/reference/errors.

The long poll is a source of `couriers.receiving.poller.Poller`. The community must have it and the events that are
wanted switched on: `message_new`, for bots with scenarios `message_event`, for read marks `message_read`. VK keeps
events for a while under a number `ts`. Source: dev.vk.com, "Bots Long Poll API".
"""

import asyncio
import atexit
import json
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

import aiohttp

from couriers.provider_calls import noted_call
from couriers.receiving.poller import Page
from couriers.sending import ReadMark

with warnings.catch_warnings():  # vkbottle replaces warnings.showwarning, so that warnings go into its own log
    from vkbottle import API, ABCResponseValidator, AiohttpClient, BotPolling, CaptchaError, VKAPIError

_log = logging.getLogger("vkbottle")
_log.handlers.clear()  # its own handler would print each line a second time
_log.setLevel(logging.WARNING)  # below are the texts of messages and the answers

VkError = VKAPIError
"""VK's error, with its `code`."""

TOKEN_REFUSED = frozenset({5, 27, 28})
AMBIGUOUS = frozenset({1, 10, 950})
THROTTLED = frozenset({6, 9, 29})
NEEDS_PERSON = frozenset({14, 17, 3300})

WAIT = 10
"""Seconds that VK holds a request without events."""

PAUSE = 5.0  # seconds after a failure of the long poll

LATER = "The token may be right; Ada tries again. Other programs that use this token share its limit."


class NotJson(ValueError):
    """The response is not JSON: usually the error page of a proxy."""


class VkUnavailable(Exception):
    """VK cannot be reached or refuses the call."""


class VkRefused(VkUnavailable):
    """VK refuses this call."""


class TokenRefused(Exception):
    """The token was withdrawn, or is of no community; only an operator can help."""


FAILURES = (aiohttp.ClientError, OSError, NotJson)
"""The errors of a request that has no response of VK."""


class _Http(AiohttpClient):
    def __init__(self, limit: aiohttp.ClientTimeout) -> None:
        super().__init__(cookie_jar=aiohttp.DummyCookieJar())
        # A redirect would take the token to another host.
        self._always: dict[str, Any] = {"allow_redirects": False, "timeout": limit}

    @asynccontextmanager
    async def request(
        self, url: str, method: str = "GET", data: Any = None, **more: Any
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        async with super().request(url, method, data, **(more | self._always)) as response:
            yield response

    async def request_text(self, url: str, method: str = "GET", data: Any = None, **more: Any) -> str:
        with noted_call(url.partition("?")[0].rpartition("/")[2] or method) as call:
            async with self.request(url, method, data, **more) as response:
                text = await response.text("utf-8", errors="replace")
                call.answered(response.status, _words_of(text))
                return text

    async def request_json(self, url: str, method: str = "GET", data: Any = None, **more: Any) -> Any:
        """Return the JSON. Raises one of FAILURES."""
        return _decoded(await self.request_text(url, method, data, **more))

    async def close(self) -> None:
        await super().close()
        atexit.unregister(self.close_connector)


class _Answers(ABCResponseValidator):
    """Decodes an answer and raises VK's error; any other answer is returned as it is.

    vkbottle's own validators repeat a call whose answer is not JSON, and fail for an error without all of its fields.
    """

    async def validate(self, method: str, data: dict[str, Any], response: Any, ctx_api: Any) -> Any:
        body = _decoded(response)
        error = body.get("error") if isinstance(body, dict) else None
        if not isinstance(error, dict) or not isinstance(code := error.get("error_code"), int):
            return body
        picture: dict[str, Any] = {"captcha_sid": "", "captcha_img": ""} if code == CaptchaError.code else {}
        raise VKAPIError[code](error_msg=str(error.get("error_msg")), **picture)


class VkClient(API):
    """The client of one community. Safe for concurrent calls. `api_url`: "…/method/" of a sandbox in place of VK.

    `request` returns VK's body; it raises VkError or one of FAILURES.
    """

    def __init__(self, token: str, api_url: str | None, timeout: timedelta = timedelta(seconds=20)) -> None:
        seconds = timeout.total_seconds()
        limit = aiohttp.ClientTimeout(total=seconds, connect=seconds / 3)
        self._http = _Http(limit)
        super().__init__(token, http_client=self._http)
        self.response_validators = [_Answers()]
        self.API_URL = f"{(api_url or API.API_URL).rstrip('/')}/"

    async def call(self, method: str, **parameters: Any) -> Any:
        """Return the response. Raises VkUnavailable, VkRefused, TokenRefused."""
        with faults(method):
            return (await self.request(method, parameters)).get("response")

    async def upload(self, url: str, field: str, name: str, media_type: str, data: bytes) -> Any:
        """Transfer a file to an address that VK named; return VK's body. Raises one of FAILURES.

        vkbottle's uploaders guess the type of a file from its name, and change the letters of the name.
        """
        form = aiohttp.FormData(quote_fields=False)  # names have no quotation marks, and arrive as they are
        form.add_field(field, data, filename=name, content_type=media_type)
        return await self._http.request_json(url, "POST", form)

    async def close(self) -> None:
        await self._http.close()


@contextmanager
def faults(method: str) -> Iterator[None]:
    """Raise VkUnavailable, VkRefused, TokenRefused for the errors of a call and for an answer of another form, without
    the text of the cause: that can contain the token.
    """
    try:
        yield
    except VkError as error:
        if error.code in TOKEN_REFUSED:
            raise TokenRefused("VK does not accept the token: check ADA_VK_TOKEN") from None
        raise VkRefused(f"{method}: error {error.code}") from None
    except FAILURES as error:
        name = type(error).__name__
        raise VkUnavailable(f"VK cannot be reached ({name}): check the network and ADA_VK_API_URL") from None
    except (LookupError, TypeError, AttributeError):
        raise VkUnavailable("the answer has another form than VK's") from None


def _words_of(text: str) -> str:
    """Return VK's error in an answer, or the beginning of what is no answer of VK; "" without an error."""
    try:
        body = _decoded(text)
    except NotJson:
        return text
    error = body.get("error") if isinstance(body, dict) else None
    return f"VK error {error.get('error_code')}: {error.get('error_msg')}" if isinstance(error, dict) else ""


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotJson("the answer is not JSON") from error


async def find_community(client: VkClient) -> int:
    """Return the id of the token's community. Raises TokenRefused if it has none; VkUnavailable, VkRefused."""
    with faults("groups.getById"):
        try:
            body: Any = await client.request("groups.getById", {})
        except VkError as error:
            raise _refusal(error.code, str(error)) from None
    found = body.get("response") if isinstance(body, dict) else None
    groups = found.get("groups") if isinstance(found, dict) else found
    group = groups[0] if isinstance(groups, list) and groups else None
    if not isinstance(group, dict) or not isinstance(group.get("id"), int):
        raise TokenRefused("VK does not accept this token for a community (no community): check ADA_VK_TOKEN")
    return int(group["id"])


def _refusal(code: int, text: str) -> VkUnavailable | TokenRefused:
    if code in THROTTLED | NEEDS_PERSON | AMBIGUOUS:
        remedy = "Confirm the account in a browser." if code in NEEDS_PERSON else LATER
        return VkUnavailable(f"VK does not sign in this community now (error {code}: {text}). {remedy}")
    fault = TokenRefused if code in TOKEN_REFUSED else VkRefused
    return fault(f"VK does not accept this token for a community (error {code}: {text}): check ADA_VK_TOKEN")


class VkLongPoll:
    """One per process. vkbottle's loop around the same calls goes on when the token is refused, and when an event was
    not handled.
    """

    faults: tuple[type[Exception], ...] = (VkUnavailable,)

    def __init__(self, client: VkClient, community: int = 0) -> None:
        """Without a community `sign_in` asks for it, before the first poll."""
        self._client, self._community = client, community
        self._server: dict[str, Any] = {}

    async def sign_in(self) -> str:
        """Return the name of the community. Raises VkUnavailable, TokenRefused."""
        self._community = await find_community(self._client)
        return f"vk.{self._community}"

    async def poll(self, position: str) -> Page:
        """Wait for the events from a position on; return them and the next position. Without a position, and if VK has
        lost it, return that of now. Raises VkUnavailable, TokenRefused.
        """
        polling = BotPolling(self._client, self._community, wait=WAIT)
        server, self._server = self._server, {}  # after a fault the server is asked for again
        events: Any = ()
        with faults("groups.getLongPollServer"):
            if not server or not position:
                server = await polling.get_server()
            if position:
                server["ts"] = position
                answer = await polling.get_event(server)
                if "failed" in answer:
                    server = await polling.handle_failed_event(server, answer)
                    server = server or await polling.get_server()
                else:
                    server["ts"], events = answer["ts"], answer.get("updates")
            next_position = str(server["ts"])
        self._server = server
        return Page([one for one in events if isinstance(one, dict)] if isinstance(events, list) else [], next_position)


async def read_marks(client: VkClient, community: int) -> AsyncIterator[ReadMark]:
    """Emit the read marks of the community until cancelled. A lost mark is covered by the dialog's next one."""
    long_poll, position = VkLongPoll(client, community), ""
    while True:
        try:
            page = await long_poll.poll(position)
        except (VkUnavailable, TokenRefused):
            await asyncio.sleep(PAUSE)
            continue
        position = page.position
        for mark in _marks_in(page.events):
            yield mark


def _marks_in(events: Sequence[Mapping[str, Any]]) -> Iterator[ReadMark]:
    for event in events:
        read = event.get("object") if event.get("type") == "message_read" else None
        if isinstance(read, dict) and _is_private(read) and isinstance(read.get("read_message_id"), int):
            yield ReadMark(str(read["from_id"]), read["read_message_id"])


def _is_private(read: Mapping[str, Any]) -> bool:
    """Return whether a mark is of a private dialog: that of one member of a chat does not concern the private messages
    to it.
    """
    return isinstance(read.get("from_id"), int) and read.get("peer_id", read["from_id"]) == read["from_id"]
