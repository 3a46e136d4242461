"""The HTTP side of the VK API: POST or GET /method/NAME, long poll, uploads."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from multidict import MultiDict, MultiDictProxy

from sandbox.events import Fault
from sandbox.http_listener import MAX_BODY, HttpListener, disconnect, html_page, no_response
from sandbox.state import SandboxState
from sandbox.vk.api_request import GROUP, ApiRequest
from sandbox.vk.community import Community
from sandbox.vk.errors import ApiError, ConnectionFault, RequestFailed
from sandbox.vk.events import Events, LongPoll
from sandbox.vk.people_actions import PeopleActions
from sandbox.vk.uploads import MAX_FILE, Uploads
from sandbox.vkscript import Value

TOKEN = "vk1.a.sandbox"


class VkServer(HttpListener):
    """Simulates api.vk.com for the community with `token`. `url` replaces https://api.vk.com/method/."""

    def __init__(self, state: SandboxState, host: str = "127.0.0.1", port: int = 0, token: str = TOKEN) -> None:
        self._state = state
        self._community = Community(state)
        self.uploads = Uploads(GROUP)
        self.long_poll = LongPoll(GROUP)
        self.events = Events(state, GROUP, self.long_poll)
        self.people = PeopleActions(state, self._community, self.events)
        self.token = token
        app = web.Application(client_max_size=max(MAX_BODY, MAX_FILE))
        app.router.add_route("*", "/method/{method}", self._handle)
        app.router.add_route("*", "/longpoll", self._handle_long_poll)
        app.router.add_post("/upload/{key}", self._handle_upload)
        app.router.add_get("/files/{attachment}", self._send_file)
        super().__init__(app, host, port, "/method/")

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._state.count("vk", "http")
        parameters = await _parameters(request)
        api_request = ApiRequest(self._state, self._community, self.uploads, self.people, self._long_poll_server)
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

    async def _handle_upload(self, request: web.Request) -> web.StreamResponse:
        """Return one file in a form, at the address that …getMessagesUploadServer named."""
        try:
            form = await request.post()
        except (ValueError, LookupError):
            form = MultiDictProxy(MultiDict())
        files = [(field, value) for field, value in form.items() if isinstance(value, web.FileField)]
        if len(files) != 1:
            return web.json_response({"error": "unknown error", "error_descr": "one file is expected"})
        ((field, file),) = files
        data = await asyncio.to_thread(file.file.read)
        self._state.count("vk", "uploads")
        key = request.match_info["key"]
        return web.json_response(self.uploads.upload(key, field, file.filename, file.content_type, data))

    async def _send_file(self, request: web.Request) -> web.StreamResponse:
        """Return a file, at the address that a message names."""
        saved = self.uploads.get(request.match_info["attachment"])
        if saved is None:
            return web.Response(status=404)
        return web.Response(body=saved.data, content_type=saved.media_type)

    def file_of_person(self, kind: str, name: str, media_type: str, data: bytes) -> dict[str, Any]:
        """Store a file of a person; return it as an attachment of a message. `kind`: photo, doc or audio_message."""
        saved = self.uploads.store(kind, name, media_type, data)
        url = self.url.removesuffix("method/") + f"files/{saved.attachment}"
        if kind == "photo":
            small = {"type": "s", "width": 75, "height": 56, "url": f"{url}_small"}
            return {
                "type": kind,
                kind: {
                    **saved.fields(),
                    "sizes": [small, {**small, "type": "w", "width": 800, "height": 600, "url": url}],
                },
            }
        where = {"link_ogg": url} if kind == "audio_message" else {"url": url, "title": name}
        return {"type": kind, kind: {**saved.fields(), **where}}

    async def start(self) -> None:
        await super().start()
        self.uploads.url = self.url.removesuffix("method/") + "upload/"

    async def stop(self) -> None:
        """Stop; events that were not posted to a callback address are lost."""
        await self.events.disconnect()
        await super().stop()

    def mark_read(self, peer: str) -> int:
        """Mark all messages to the peer as read; return how many events this is."""
        return self.people.mark_read(peer)

    def write(self, peer: str, text: str) -> int:
        """Write to the community as a person; return the number of the message in the dialog."""
        return self.people.write(peer, text)

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
