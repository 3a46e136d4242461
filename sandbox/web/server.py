"""The sandbox's HTTP server: GET / is the inbox page, its files are in page/, the rest is JSON: docs/sandbox.md."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aiohttp import web

from sandbox.bot_api import BotApiServer
from sandbox.events import ReceivedMessage, Rule
from sandbox.faults import FAULTS
from sandbox.http_listener import HttpListener
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.mail import SmtpServer
from sandbox.max import MaxServer
from sandbox.sms import SmsServer
from sandbox.state import SandboxState
from sandbox.telegram import TelegramServer
from sandbox.vk import VkServer
from sandbox.web.bot_routes import BotRoutes
from sandbox.web.chat_fields import found
from sandbox.web.chats import Chats
from sandbox.web.input import (
    MAX_INTEGER,
    Fields,
    InboxQuery,
    normalized_address,
    read_body,
    read_inbox_query,
    read_rule,
)
from sandbox.web.mail_routes import MailRoutes
from sandbox.web.max_routes import MaxRoutes
from sandbox.web.people import People
from sandbox.web.people_routes import PeopleRoutes
from sandbox.web.problems import Problem, problems
from sandbox.web.vk_routes import VkRoutes

_PAGE = {file.name: file for file in Path(__file__).with_name("page").iterdir()}
_KINDS = {".html": "html", ".css": "css", ".js": "javascript"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; "
    "script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; media-src 'self'; frame-src 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class WebServer(HttpListener):
    """Shows the state and changes its rules. `environment` is shown in /state.json; `console`: the address of Ada's
    console, "" if it is not known.
    """

    def __init__(
        self,
        state: SandboxState,
        telegram: TelegramServer,
        vk: VkServer,
        sms: SmsServer,
        bot_api: BotApiServer,
        max_server: MaxServer,
        mail: SmtpServer,
        environment: Callable[[], Mapping[str, str]],
        console: str,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._state, self._telegram, self._sms = state, telegram, sms
        self._environment, self._console = environment, console
        app = web.Application(middlewares=[problems])
        chats = Chats(state, bot_api, vk.people, max_server.people)
        people = PeopleRoutes(state, People(), chats)
        of_channels = [*BotRoutes(bot_api).routes(), *VkRoutes(vk, chats).routes(), *MaxRoutes(max_server).routes()]
        of_channels += MailRoutes(mail).routes()
        app.add_routes([*self._routes(), *of_channels, *people.routes()])
        super().__init__(app, host, port, "/")

    def _routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self._page),
            web.get("/page/{name}", self._page),
            web.get("/inbox.json", self._inbox),
            web.delete("/inbox", self._clear_inbox),
            web.get("/state.json", self._show_state),
            web.get("/magic.json", self._magic),
            web.get("/faults.json", self._faults),
            web.get("/rules", self._rules),
            web.post("/rules", self._add_rule),
            web.delete("/rules", self._clear_rules),
            web.post("/write/telegram", self._write_telegram),
            web.post("/write/sms", self._write_sms),
            web.post("/press/telegram", self._press_telegram),
            web.post("/read/telegram", self._read_telegram),
        ]

    # the inbox

    async def _page(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info.get("name", "index.html")
        if name not in _PAGE:
            raise web.HTTPNotFound
        kind = {"Content-Type": f"text/{_KINDS[_PAGE[name].suffix]}; charset=utf-8"}
        return web.FileResponse(_PAGE[name], headers={**_HEADERS, **kind})

    async def _inbox(self, request: web.Request) -> web.Response:
        found = await self._wait_for(read_inbox_query(request.query))
        return web.json_response(
            {"messages": [asdict(message) for message in found], "newest": self._state.messages.newest}
        )

    async def _wait_for(self, query: InboxQuery) -> list[ReceivedMessage]:
        """Return the messages. If there are none, wait up to `query.wait` seconds for the first."""
        try:
            async with asyncio.timeout(query.wait or None):
                while not (found := self._read(query)) and query.wait:
                    await self._state.wait_for_message()
        except TimeoutError:
            return []
        return found

    def _read(self, query: InboxQuery) -> list[ReceivedMessage]:
        return self._state.messages.read(query.channel, query.address, query.after, query.limit, query.text)

    async def _clear_inbox(self, _: web.Request) -> web.Response:
        self._state.messages.clear()
        return web.Response(status=204)

    # state

    async def _show_state(self, _: web.Request) -> web.Response:
        inbox = self._state.messages
        shown = {"stored": len(inbox), "newest": inbox.newest, "people": inbox.recipient_counts()}
        state = {"counters": self._state.counters(), "inbox": shown, "environment": dict(self._environment())}
        state["console"] = self._console
        return web.json_response(state)

    async def _magic(self, _: web.Request) -> web.Response:
        return web.json_response({channel: _magic_recipients(channel) for channel in MAGIC_RECIPIENTS})

    async def _faults(self, _: web.Request) -> web.Response:
        kinds = {channel: {name: asdict(kind) for name, kind in table.items()} for channel, table in FAULTS.items()}
        return web.json_response(kinds)

    # rules

    async def _rules(self, _: web.Request) -> web.Response:
        listed = [_rule_json(number, rule) for number, rule in self._state.rules().items()]
        return web.json_response({"rules": listed})

    async def _add_rule(self, request: web.Request) -> web.Response:
        rule = read_rule(await read_body(request))
        return web.json_response(_rule_json(self._state.add_rule(rule), rule), status=201)

    async def _clear_rules(self, _: web.Request) -> web.Response:
        self._state.clear_rules()
        return web.Response(status=204)

    # actions of recipients

    async def _write_telegram(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, text, quoted = _user(fields), fields.text("text"), fields.integer("reply_to", 1, MAX_INTEGER)
        fields.check()
        self._telegram.write(user, text, reply_to=quoted or 0)
        return web.Response(status=204)

    async def _press_telegram(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, message, button = _user(fields), fields.integer("message", 1, MAX_INTEGER), fields.text("button")
        fields.check()
        return web.json_response({"query": found(self._telegram.press, user, message or 0, button)})

    async def _read_telegram(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user = _user(fields)
        fields.check()
        return web.json_response({"notified": self._telegram.mark_read(user)})

    async def _write_sms(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        number, text = normalized_address("sms", fields.text("address")), fields.text("text")
        url = fields.text("url") if "url" in fields else None
        fields.check()
        try:
            status = await self._sms.write(number, text, url)
        except LookupError:
            raise Problem(409, "NO_INBOUND_URL", "no inbound URL is set: give `url`") from None
        return web.json_response({"status": status})


def _user(fields: Fields) -> str:
    """Take the id of a person in Telegram."""
    return str(fields.integer("address", 1, 2**52) or 0)


def _magic_recipients(channel: str) -> list[dict[str, Any]]:
    """Return the magic recipients of one channel with the meaning of their faults."""
    return [
        {**asdict(fault), "address": to, "means": FAULTS[channel][fault.name].meaning}
        for to, fault in MAGIC_RECIPIENTS[channel].items()
    ]


def _rule_json(number: int, rule: Rule) -> dict[str, Any]:
    """Return a rule in the form of POST /rules."""
    fields = asdict(rule)
    fault = fields.pop("fault")
    return {"number": number, **fields, "fault": fault["name"], "value": fault["value"]}
