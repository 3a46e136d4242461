"""The HTTP side: GET / is the page, the rest is JSON. docs/sandbox.md describes the calls."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from sandbox.events import Received, Rule
from sandbox.faults import FAULTS
from sandbox.http_listener import Listener
from sandbox.magic_recipients import MAGIC
from sandbox.state import World
from sandbox.web.input import Fields, Wanted, address, body, rule, wanted
from sandbox.web.problems import Problem, problems

_PAGE = Path(__file__).with_name("page.html")
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"


class Telegram(Protocol):
    """What people can do on Telegram."""

    def mark_read(self, address: str) -> int: ...

    def write(self, address: str, text: str) -> None: ...


class Sms(Protocol):
    """What people can do by SMS."""

    async def write(self, number: str, text: str, url: str | None = None) -> int | None: ...


class WebServer(Listener):
    """Shows one world and takes its rules; `environment` is shown in /state.json."""

    def __init__(
        self,
        world: World,
        telegram: Telegram,
        sms: Sms,
        environment: Callable[[], Mapping[str, str]],
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._world, self._telegram, self._sms, self._environment = world, telegram, sms, environment
        app = web.Application(middlewares=[problems])
        app.add_routes(self._routes())
        super().__init__(app, host, port, "/")

    def _routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self._page),
            web.get("/inbox.json", self._inbox),
            web.delete("/inbox", self._empty),
            web.get("/state.json", self._state),
            web.get("/magic.json", self._magic),
            web.get("/rules", self._rules),
            web.post("/rules", self._add_rule),
            web.delete("/rules", self._clear_rules),
            web.post("/write/telegram", self._write_telegram),
            web.post("/write/sms", self._write_sms),
            web.post("/read/telegram", self._read_telegram),
        ]

    # the inbox

    async def _page(self, _: web.Request) -> web.StreamResponse:
        return web.FileResponse(_PAGE, headers={"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"})

    async def _inbox(self, request: web.Request) -> web.Response:
        found = await self._found(wanted(request.query))
        return web.json_response({"messages": [asdict(one) for one in found], "newest": self._world.messages.newest})

    async def _found(self, what: Wanted) -> list[Received]:
        """Return the messages; when there are none, wait for the first as long as the reader wishes."""
        try:
            async with asyncio.timeout(what.wait or None):
                while not (found := self._now(what)) and what.wait:
                    await self._world.news()
        except TimeoutError:
            return []
        return found

    def _now(self, what: Wanted) -> list[Received]:
        return self._world.messages.read(what.channel, what.address, what.after, what.limit)

    async def _empty(self, _: web.Request) -> web.Response:
        self._world.messages.clear()
        return web.Response(status=204)

    # what is known

    async def _state(self, _: web.Request) -> web.Response:
        inbox = self._world.messages
        shown = {"stored": len(inbox), "newest": inbox.newest, "people": inbox.people()}
        state = {"counters": self._world.counters(), "inbox": shown, "environment": dict(self._environment())}
        return web.json_response(state)

    async def _magic(self, _: web.Request) -> web.Response:
        return web.json_response({channel: _magic_of(channel) for channel in MAGIC})

    # rules

    async def _rules(self, _: web.Request) -> web.Response:
        listed = [_shown(number, each) for number, each in self._world.rules().items()]
        return web.json_response({"rules": listed})

    async def _add_rule(self, request: web.Request) -> web.Response:
        added = rule(await body(request))
        return web.json_response(_shown(self._world.add_rule(added), added), status=201)

    async def _clear_rules(self, _: web.Request) -> web.Response:
        self._world.clear_rules()
        return web.Response(status=204)

    # what people do

    async def _write_telegram(self, request: web.Request) -> web.Response:
        fields = await body(request)
        user, text = _user(fields), fields.text("text")
        fields.check()
        self._telegram.write(user, text)
        return web.Response(status=204)

    async def _read_telegram(self, request: web.Request) -> web.Response:
        fields = await body(request)
        user = _user(fields)
        fields.check()
        return web.json_response({"told": self._telegram.mark_read(user)})

    async def _write_sms(self, request: web.Request) -> web.Response:
        fields = await body(request)
        number, text = address("sms", fields.text("address")), fields.text("text")
        url = fields.text("url") if "url" in fields else None
        fields.check()
        try:
            status = await self._sms.write(number, text, url)
        except LookupError:
            raise Problem(409, "NO_INBOUND_URL", "no inbound address is set: give `url`") from None
        return web.json_response({"status": status})


def _user(fields: Fields) -> str:
    """Take a Telegram user id."""
    return str(fields.integer("address", 1, 2**52) or 0)


def _magic_of(channel: str) -> list[dict[str, Any]]:
    """Return the magic recipients of one channel with what their fault means."""
    return [
        {**asdict(fault), "address": to, "means": FAULTS[channel][fault.name].means}
        for to, fault in MAGIC[channel].items()
    ]


def _shown(number: int, each: Rule) -> dict[str, Any]:
    """Return a rule in the form in which it is added."""
    shown = asdict(each)
    fault = shown.pop("fault")
    return {"number": number, **shown, "fault": fault["name"], "value": fault["value"]}
