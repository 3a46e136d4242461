"""The HTTP side: the calls of the Bot API, and the addresses for uploads."""

from collections.abc import Awaitable, Callable
from hmac import compare_digest
from typing import Any

from aiohttp import web

from sandbox.events import Fault
from sandbox.http_listener import MAX_BODY, STORED, HttpListener
from sandbox.max.bot import CHANNEL, Bot
from sandbox.max.errors import ApiError, malformed, unauthorized
from sandbox.max.faults import CONNECTION, Refusals, respond
from sandbox.max.people_actions import PeopleActions
from sandbox.max.updates import POLLS_PER_SECOND, Subscription, Updates
from sandbox.max.uploads import Uploads
from sandbox.state import SandboxState

TOKEN = "max-sandbox-token"
_MAX_FILE = 4 * MAX_BODY
_ACTIONS = frozenset({"typing_on", "sending_photo", "sending_video", "sending_audio", "sending_file", "mark_seen"})

Json = dict[str, Any]
Call = Callable[[Json, Any], Any]
"""One call of the API, given the query and the body."""


class MaxServer(HttpListener):
    """Simulates platform-api2.max.ru for the bot with `token`. `webhook_pause` and `polls_per_second`: as `Updates`
    has them.
    """

    def __init__(
        self,
        state: SandboxState,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = TOKEN,
        *,
        webhook_pause: float = 1.0,
        polls_per_second: int = POLLS_PER_SECOND,
    ) -> None:
        self.token = token
        self._state = state
        self._updates = Updates(webhook_pause, lambda name: state.count(CHANNEL, name), polls_per_second)
        self._bot = Bot(state, self._updates)
        self._refusals = Refusals()
        self.people = PeopleActions(self._bot)
        app = web.Application(client_max_size=_MAX_FILE)
        app.router.add_post("/upload/{key}", self._upload)
        app.router.add_get("/files/{token}", self._send_file)
        app.router.add_route("*", "/{path}", self._handle)
        app.router.add_route("*", "/chats/{chat_id}/{path}", self._handle)
        super().__init__(app, host, port, "")
        # the name of a call is that of rules and counters
        self._calls: dict[tuple[str, str], tuple[str, Call]] = {
            ("GET", "me"): ("getMe", lambda query, body: self._bot.about()),
            ("POST", "messages"): ("sendMessage", self._send),
            ("PUT", "messages"): ("editMessage", self._edit),
            ("DELETE", "messages"): ("deleteMessage", self._delete),
            ("GET", "messages"): ("getMessages", self._get_messages),
            ("POST", "answers"): ("answer", self._answer),
            ("POST", "actions"): ("sendAction", self._send_action),
            ("POST", "uploads"): ("upload", lambda query, body: self._bot.uploads.server(query.get("type", ""))),
            ("GET", "updates"): ("getUpdates", self._get_updates),
            ("GET", "subscriptions"): ("getSubscriptions", self._get_subscriptions),
            ("POST", "subscriptions"): ("subscribe", self._subscribe),
            ("DELETE", "subscriptions"): ("unsubscribe", self._unsubscribe),
        }

    @property
    def uploads(self) -> Uploads:
        return self._bot.uploads

    async def start(self) -> None:
        await super().start()
        self._bot.uploads.url = f"{self.url}/upload/"

    async def stop(self) -> None:
        """Stop; the subscription is forgotten, and updates that were not posted are lost."""
        await self._updates.subscribe(None)
        await super().stop()

    async def drop_subscription(self) -> None:
        """Unsubscribe the bot, as MAX does after eight hours without a success."""
        await self._updates.subscribe(None)

    async def _send_file(self, request: web.Request) -> web.StreamResponse:
        """Return a file, at the address that a message names."""
        try:
            file = self._bot.uploads.get(request.match_info["token"])
        except LookupError:
            return web.Response(status=404)
        return web.Response(body=file.data, content_type=file.media_type)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._state.count(CHANNEL, "http")
        try:
            return await self._call(request)
        except ApiError as error:
            return error.response()

    async def _call(self, request: web.Request) -> web.StreamResponse:
        """Run one call. Raises ApiError."""
        self._check_token(request)
        name, call = self._calls.get((request.method, request.match_info["path"]), ("", None))
        if call is None:
            raise ApiError(404, "not.found", f"Path /{request.match_info['path']} is not recognized")
        query, body = dict(request.query), await _body(request)
        if "chat_id" in request.match_info:
            query["chat_id"] = request.match_info["chat_id"]
        self._state.count(CHANNEL, name)
        address = self._address(query)
        fault = self._state.fault(CHANNEL, address, name)
        self._refusals.check(fault, address)
        if fault is not None and fault.name in CONNECTION:
            return await respond(request, fault)
        try:
            result = call(query, body)
            result = await result if isinstance(result, Awaitable) else result
        except ValueError:
            raise malformed("a parameter is not a number") from None
        return await self._respond(request, fault, result)

    async def _respond(self, request: web.Request, fault: Fault | None, result: Any) -> web.StreamResponse:
        if fault is not None and fault.name in STORED:
            return await respond(request, fault)
        return web.json_response({"success": True} if result is None else result)

    def _check_token(self, request: web.Request) -> None:
        given = request.headers.get("Authorization", "")
        if given.startswith("Bearer ") or "access_token" in request.query:
            raise unauthorized("Malformed access token")
        if not compare_digest(given.encode(), self.token.encode()):
            raise unauthorized()

    def _address(self, query: Json) -> str:
        if "message_id" in query:
            try:
                return self._bot.chats.find(query["message_id"])[0].address
            except ApiError:
                return "*"
        return self._bot.address_of(query) if {"user_id", "chat_id"} & query.keys() else "*"

    # the calls

    def _send(self, query: Json, body: Any) -> Json:
        return {"message": self._bot.send(self._bot.chat_of(query), body)}

    def _edit(self, query: Json, body: Any) -> None:
        self._bot.edit(query.get("message_id", ""), body)

    def _delete(self, query: Json, body: Any) -> None:
        self._bot.delete(query.get("message_id", ""))

    def _get_messages(self, query: Json, body: Any) -> Json:
        """Return the named messages that exist, otherwise those of a chat, newest first, so `to` is before `from`."""
        if "message_ids" in query:
            return {"messages": self._bot.chats.named(query["message_ids"].split(","))}
        chat = self._bot.chat_of({"chat_id": query.get("chat_id", "")})
        self._bot.chats.check_may_write(chat)
        until, since = int(query.get("from") or 2**62), int(query.get("to") or 0)
        return {"messages": self._bot.chats.newest(chat, since, until, int(query.get("count") or 50))}

    def _answer(self, query: Json, body: Any) -> None:
        self._bot.answer(query.get("callback_id", ""), body)

    def _send_action(self, query: Json, body: Any) -> None:
        chat = self._bot.chat_of({"chat_id": query.get("chat_id", "")})
        self._bot.chats.check_may_write(chat)
        if not isinstance(body, dict) or body.get("action") not in _ACTIONS:
            raise malformed("action: it is not known")

    def lose_updates(self) -> None:
        """Forget the updates, and count anew."""
        self._updates.lose_all()

    async def _get_updates(self, query: Json, body: Any) -> Json:
        marker = query.get("marker")
        types = [one for one in query.get("types", "").split(",") if one]
        limit, timeout = int(query.get("limit") or 100), int(query.get("timeout") or 30)
        return await self._updates.poll(int(marker) if marker else None, limit, timeout, types)

    def _get_subscriptions(self, query: Json, body: Any) -> Json:
        found = self._updates.subscription
        return {"subscriptions": [found.shown()] if found else []}

    async def _subscribe(self, query: Json, body: Any) -> None:
        await self._updates.subscribe(Subscription.read(body))

    async def _unsubscribe(self, query: Json, body: Any) -> None:
        found = self._updates.subscription
        if found is None or found.url != query.get("url"):
            raise malformed("url: there is no such subscription")
        await self._updates.subscribe(None)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        """Take one file. An upload that carries our token is refused: it is another host."""
        self._state.count(CHANNEL, "uploads")
        if "Authorization" in request.headers:
            return web.Response(status=400, text="a token of the Bot API on another host")
        try:
            file = (await request.post()).get("data")
        except (ValueError, LookupError):
            file = None
        if not isinstance(file, web.FileField):
            return web.Response(status=400, text="one file in the field data is expected")
        return self._bot.uploads.upload(request.match_info["key"], file.filename, file.content_type, file.file.read())


async def _body(request: web.Request) -> Any:
    if not request.can_read_body:
        return None
    try:
        return await request.json()
    except ValueError:
        raise malformed("the body is not JSON") from None
