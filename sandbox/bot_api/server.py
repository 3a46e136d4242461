"""The HTTP side of the Bot API: /bot<token>/METHOD and /file/bot<token>/PATH."""

import inspect
import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from sandbox.bot_api.chat_methods import CHAT_METHODS
from sandbox.bot_api.commands import COMMANDS
from sandbox.bot_api.faults import CONNECTION, check_refused, respond
from sandbox.bot_api.membership.invite_links import INVITE_LINKS
from sandbox.bot_api.membership.joining import Joining
from sandbox.bot_api.membership.members import MEMBERS
from sandbox.bot_api.messages.editing import EDITING
from sandbox.bot_api.messages.files import FILES
from sandbox.bot_api.messages.inline import INLINE
from sandbox.bot_api.messages.media import MEDIA
from sandbox.bot_api.messages.sending import SENDING
from sandbox.bot_api.people_actions import PeopleActions
from sandbox.bot_api.state.bot import CHANNEL, Bot
from sandbox.bot_api.state.errors import UNAUTHORIZED, ApiError
from sandbox.bot_api.state.parameters import Parameters, read_parameters
from sandbox.bot_api.state.updates import Updates, WebhookSender
from sandbox.bot_api.update_methods import UPDATE_METHODS
from sandbox.events import ANY, Fault
from sandbox.http_listener import MAX_BODY, STORED, HttpListener
from sandbox.state import SandboxState

TOKEN = "4343:sandbox"
_FURTHER = re.compile(r"[1-9][0-9]{0,15}:sandbox")
QUERY_LIFETIME = 900.0  # seconds

# By name in lower case: the names of methods are case-insensitive.
METHODS = {
    name.lower(): (name, method)
    for table in (
        *(SENDING, MEDIA, FILES, EDITING, CHAT_METHODS, COMMANDS, MEMBERS, INVITE_LINKS, INLINE, UPDATE_METHODS),
    )
    for name, method in table.items()
}


class BotApiServer(HttpListener):
    """Simulates api.telegram.org for the bot with `token`. `url` replaces https://api.telegram.org. A token such as
    5001:sandbox is that of another bot, with people and chats of its own (`people_of`), until it is in `revoked`.

    `people` are the actions of the people who use the bot; with `joining` they join groups and leave. `query_lifetime`:
    seconds in which a callback query can be answered. `webhook_pause`: seconds before a failed post of an update is
    repeated; they double each time.
    """

    def __init__(
        self,
        state: SandboxState,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = TOKEN,
        *,
        query_lifetime: float = QUERY_LIFETIME,
        webhook_pause: float = 1.0,
    ) -> None:
        self.token = token
        self.revoked: set[str] = set()
        self._state = state
        self._times = query_lifetime, webhook_pause
        self._bot = self._new_bot(token)
        self._bots = {token: self._bot}
        self.people, self.joining = PeopleActions(self._bot), Joining(self._bot)
        app = web.Application(client_max_size=2 * MAX_BODY)
        app.router.add_route("*", r"/bot{token}/{method}", self._handle)
        app.router.add_get(r"/file/bot{token}/files/{file_id}", self._download)
        super().__init__(app, host, port, "")

    def _new_bot(self, token: str) -> Bot:
        lifetime, pause = self._times
        updates = Updates()
        return Bot(self._state, token, lifetime, updates, WebhookSender(updates, pause))

    def people_of(self, token: str) -> PeopleActions:
        """Return the actions of the people who use the bot with this token. Raises LookupError if there is none."""
        bot = self._find(token)
        if bot is None:
            raise LookupError(f"there is no bot with the token {token}")
        return PeopleActions(bot)

    @property
    def further(self) -> Mapping[str, Bot]:
        """Return the bots beside the first that have been used, by token."""
        return {one: bot for one, bot in self._bots.items() if one != self.token and one not in self.revoked}

    def _find(self, token: str) -> Bot | None:
        """Return the bot with a token; a further one is made when it is first used."""
        if token in self.revoked:
            return None
        if token not in self._bots and _FURTHER.fullmatch(token):
            self._bots[token] = self._new_bot(token)
        return self._bots.get(token)

    async def stop(self) -> None:
        """Stop; updates that were not posted to the webhook are kept."""
        for bot in self._bots.values():
            bot.webhook_sender.stop()
        await super().stop()

    async def start(self) -> None:
        await super().start()
        for bot in self._bots.values():
            if bot.webhook is not None:
                bot.webhook_sender.start(bot.webhook)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._state.count(CHANNEL, "http")
        try:
            return await self._call(request)
        except ApiError as error:
            return web.json_response(error.body(), status=error.code)

    async def _call(self, request: web.Request) -> web.StreamResponse:
        """Run one call. Raises ApiError."""
        bot = self._bot_of(request)
        name, method = METHODS.get(request.match_info["method"].lower(), ("", None))
        if method is None:
            raise ApiError(404, "Not Found: method not found")
        parameters = await read_parameters(request)
        self._state.count(CHANNEL, name)
        fault = self._fault(bot, name, parameters)
        if fault is not None and fault.name in CONNECTION:
            return await respond(request, fault)
        result: Any = method(bot, parameters)
        result = await result if inspect.isawaitable(result) else result
        self._state.changed()
        if fault is not None and fault.name in STORED:
            return await respond(request, fault)
        return web.json_response({"ok": True, "result": result})

    def _bot_of(self, request: web.Request) -> Bot:
        """Return the bot of a request's token. Raises ApiError."""
        bot = self._find(request.match_info["token"])
        if bot is None:
            raise ApiError(401, UNAUTHORIZED)
        return bot

    def _fault(self, bot: Bot, method: str, parameters: Parameters) -> Fault | None:
        """Return the fault of this call. Raises the ApiError of a fault that refuses it."""
        address = parameters.text("chat_id") or ANY
        fault = self._state.fault(CHANNEL, address, method)
        check_refused(bot, fault, address)
        return fault

    async def _download(self, request: web.Request) -> web.StreamResponse:
        try:
            bot = self._bot_of(request)
        except ApiError as error:
            return web.json_response(error.body(), status=error.code)
        upload = bot.files.get(request.match_info["file_id"])
        if upload is None:
            return web.json_response(ApiError(404, "Not Found").body(), status=404)
        return web.Response(body=upload.content, content_type="application/octet-stream")
