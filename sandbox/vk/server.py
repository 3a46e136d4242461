"""The HTTP side of the VK API: POST or GET /method/NAME."""

import json
from collections.abc import Mapping

from aiohttp import web

from sandbox.events import Fault
from sandbox.http_listener import LARGEST_BODY, Listener, cut, html, silence
from sandbox.state import World
from sandbox.vk.community import Community
from sandbox.vk.errors import ApiError, Interrupted, RequestFailed
from sandbox.vk.exchange import Exchange

TOKEN = "vk1.a.sandbox"


class VkServer(Listener):
    """Plays api.vk.com for one community, whose token is `token`. `url` takes the place of https://api.vk.com/method/."""

    def __init__(self, world: World, host: str = "127.0.0.1", port: int = 0, token: str = TOKEN) -> None:
        self._world = world
        self._community = Community(world)
        self.token = token
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_route("*", "/method/{method}", self._answer)
        super().__init__(app, host, port, "/method/")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self._world.count("vk", "http")
        parameters = await _parameters(request)
        exchange = Exchange(self._world, self._community)
        try:
            body = self._body(exchange, request.match_info["method"], parameters)
        except Interrupted as interrupted:
            self._community.discard()
            return await _fail(request, interrupted.fault)
        self._community.commit()
        if exchange.afterwards is not None:
            return await _fail(request, exchange.afterwards)
        return web.Response(text=body, content_type="application/json")

    def _body(self, exchange: Exchange, method: str, parameters: Mapping[str, str]) -> str:
        try:
            self._check(parameters)
            return json.dumps(exchange.answer(method, dict(parameters)))
        except ApiError as error:
            self._community.discard()
            return json.dumps(error.body(method, parameters))

    def _check(self, parameters: Mapping[str, str]) -> None:
        if "access_token" not in parameters:
            raise RequestFailed(5, "User authorization failed: no access_token passed.")
        if parameters["access_token"] != self.token:
            raise RequestFailed(5)
        if not parameters.get("v"):
            raise RequestFailed(8)


async def _parameters(request: web.Request) -> dict[str, str]:
    """Read query and form; what is no text, or not in the encoding it claims, counts as absent."""
    try:
        form = await request.post()
    except (ValueError, LookupError):
        return dict(request.query)
    return {**request.query, **{name: value for name, value in form.items() if isinstance(value, str)}}


async def _fail(request: web.Request, fault: Fault) -> web.StreamResponse:
    """Play a failure that is no answer of the API."""
    if fault.name == "bad_gateway":
        return html(502, "502 Bad Gateway")
    if fault.name == "not_json":
        return html(200, "Technical works")
    if fault.name == "stored_then_error":
        return html(500, "500 Internal Server Error")
    return await (silence() if fault.name == "timeout" else cut(request))
