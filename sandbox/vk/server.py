"""The HTTP side of the VK API: POST or GET /method/NAME."""

import json
import time
from collections.abc import Mapping

from aiohttp import web

from sandbox.events import Fault
from sandbox.http_listener import MAX_BODY, HttpListener, disconnect, html_page, no_response
from sandbox.state import SandboxState
from sandbox.vk.api_request import GROUP, ApiRequest
from sandbox.vk.community import Community
from sandbox.vk.errors import ApiError, ConnectionFault, RequestFailed
from sandbox.vk.long_poll import LongPoll
from sandbox.vkscript import Value

TOKEN = "vk1.a.sandbox"


class VkServer(HttpListener):
    """Simulates api.vk.com for the community with `token`. `url` replaces https://api.vk.com/method/."""

    def __init__(self, state: SandboxState, host: str = "127.0.0.1", port: int = 0, token: str = TOKEN) -> None:
        self._state = state
        self._community = Community(state)
        self.long_poll = LongPoll(GROUP)
        self.token = token
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/method/{method}", self._handle)
        app.router.add_route("*", "/longpoll", self._handle_long_poll)
        super().__init__(app, host, port, "/method/")

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._state.count("vk", "http")
        parameters = await _parameters(request)
        api_request = ApiRequest(self._state, self._community, self._long_poll_server)
        try:
            body = self._body(api_request, request.match_info["method"], parameters)
        except ConnectionFault as failure:
            self._community.discard()
            return await _inject(request, failure.fault)
        self._community.commit()
        if api_request.fault_after_commit is not None:
            return await _inject(request, api_request.fault_after_commit)
        return web.Response(text=body, content_type="application/json")

    async def _handle_long_poll(self, request: web.Request) -> web.StreamResponse:
        self._state.count("vk", "longpoll")
        return web.json_response(await self.long_poll.answer(await _parameters(request)))

    def _long_poll_server(self) -> dict[str, Value]:
        url = self.url.removesuffix("method/") + "longpoll"
        return {"server": url, "key": self.long_poll.key, "ts": str(self.long_poll.ts)}

    def mark_read(self, peer: str) -> int:
        """Mark all messages to the peer as read; return how many events this is."""
        self._state.mark_read("vk", peer)
        newest = self._community.newest_to.get(peer)
        if newest is None:
            return 0
        read = {
            "from_id": int(peer),
            "peer_id": int(peer),
            "read_message_id": newest,
            "conversation_message_id": newest,
        }
        self.long_poll.push("message_read", read)
        return 1

    def write(self, peer: str, text: str) -> int:
        """A person writes to the community; return the number of the message."""
        number = self._community.receive()
        message = {
            "id": number,
            "date": int(time.time()),
            "peer_id": int(peer),
            "from_id": int(peer),
            "text": text,
            "conversation_message_id": number,
            "random_id": 0,
            "out": 0,
            "version": 10000,
            "attachments": [],
            "fwd_messages": [],
            "important": False,
            "is_hidden": False,
        }
        self.long_poll.push("message_new", {"message": message, "client_info": {"keyboard": True, "lang_id": 0}})
        self._state.count("vk", "written")
        self._state.write("vk", peer, text)
        return number

    def _body(self, api_request: ApiRequest, method: str, parameters: Mapping[str, str]) -> str:
        try:
            self._check(parameters)
            return json.dumps(api_request.run(method, dict(parameters)))
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
    """Read query and form. A file, or a form not in its declared encoding, counts as absent."""
    try:
        form = await request.post()
    except (ValueError, LookupError):
        return dict(request.query)
    return {**request.query, **{name: value for name, value in form.items() if isinstance(value, str)}}


async def _inject(request: web.Request, fault: Fault) -> web.StreamResponse:
    """Respond with a failure that is not a response of the API."""
    if fault.name == "bad_gateway":
        return html_page(502, "502 Bad Gateway")
    if fault.name == "not_json":
        return html_page(200, "Technical works")
    if fault.name in ("stored_then_error", "stored_then_refused"):
        return html_page(500, "500 Internal Server Error")
    return await (no_response() if fault.name == "timeout" else disconnect(request))
