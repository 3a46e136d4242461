"""The calls about people in VK: what they do, what their chats show, and where the community posts its events."""

from aiohttp import web

from sandbox.vk import VkServer
from sandbox.vk.events import NotConfirmed
from sandbox.web.chat_fields import found, read_only_user, read_user
from sandbox.web.chats import Chats
from sandbox.web.input import Fields, read_body
from sandbox.web.problems import Problem
from sandbox.web.shown_file import file_response

_FIRST_CHAT = 2_000_000_001


class VkRoutes:
    """`address` is the id of the person."""

    def __init__(self, vk: VkServer, chats: Chats) -> None:
        self._vk, self._people, self._chats = vk, vk.people, chats

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/chat/vk", self._show),
            web.get("/vk/files/{attachment}", self._file),
            web.post("/write/vk", self._write),
            web.post("/edit/vk", self._edit),
            web.post("/press/vk", self._press),
            web.post("/read/vk", self._read),
            web.post("/allow/vk", self._allow),
            web.post("/deny/vk", self._deny),
            web.post("/callback/vk", self._connect),
            web.delete("/callback/vk", self._disconnect),
        ]

    async def _show(self, request: web.Request) -> web.Response:
        fields = Fields(request.query)
        user = str(read_user(fields))
        fields.check()
        return web.json_response(self._chats.vk(user))

    async def _file(self, request: web.Request) -> web.Response:
        file = self._vk.uploads.get(request.match_info["attachment"])
        if file is None:
            raise web.HTTPNotFound
        return file_response(file.data, file.media_type)

    async def _write(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, text = str(read_user(fields)), fields.text("text")
        quoted = fields.integer("reply_to", 1, 2**31) or 0
        fields.check()
        return web.json_response({"message": found(self._people.write, user, text, reply_to=quoted)})

    async def _edit(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, message, text = str(read_user(fields)), fields.integer("message", 1, 2**31) or 0, fields.text("text")
        fields.check()
        found(self._people.edit, user, message, text)
        return web.Response(status=204)

    async def _press(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, message, button = str(read_user(fields)), fields.integer("message", 0, 2**31) or 0, fields.text("button")
        chat = fields.integer("chat", _FIRST_CHAT, 2**31)
        fields.check()
        try:
            return web.json_response({"event": self._people.press(user, message, button, str(chat or ""))})
        except LookupError as error:
            raise Problem(404, "NOT_FOUND", str(error)) from None

    async def _read(self, request: web.Request) -> web.Response:
        return web.json_response({"notified": self._people.mark_read(str(await read_only_user(request)))})

    async def _allow(self, request: web.Request) -> web.Response:
        self._people.allow(str(await read_only_user(request)))
        return web.Response(status=204)

    async def _deny(self, request: web.Request) -> web.Response:
        self._people.deny(str(await read_only_user(request)))
        return web.Response(status=204)

    async def _connect(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        url, secret, confirmation = (fields.text(name) for name in ("url", "secret", "confirmation"))
        fields.check()
        try:
            await self._vk.events.connect(url, secret, confirmation)
        except NotConfirmed as error:
            raise Problem(409, "NOT_CONFIRMED", str(error)) from None
        return web.Response(status=204)

    async def _disconnect(self, _: web.Request) -> web.Response:
        await self._vk.events.disconnect()
        return web.Response(status=204)
