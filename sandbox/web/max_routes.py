"""The calls about people in MAX: what they do, and what their chats show."""

from aiohttp import web

from sandbox.max import MaxServer
from sandbox.web.chat_fields import found, optional_text, read_group, read_only_user, read_user
from sandbox.web.input import Fields, read_body
from sandbox.web.shown_file import file_response


class MaxRoutes:
    """`address` is the id of the person; `chat` is the id of a group, if the person acts there."""

    def __init__(self, server: MaxServer) -> None:
        self._people = server.people

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/chat/max", self._show),
            web.get("/max/files/{attachment}", self._file),
            web.post("/start/max", self._start),
            web.post("/stop/max", self._stop),
            web.post("/write/max", self._write),
            web.post("/press/max", self._press),
            web.post("/contact/max", self._share_contact),
            web.post("/join/max", self._join),
            web.post("/leave/max", self._leave),
        ]

    async def _show(self, request: web.Request) -> web.Response:
        fields = Fields(request.query)
        user, chat = read_user(fields), read_group(fields) or 0
        fields.check()
        return web.json_response(self._people.shown(user, chat))

    async def _file(self, request: web.Request) -> web.Response:
        file = found(self._people.file, request.match_info["attachment"])
        return file_response(file.data, file.media_type)

    async def _start(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, payload, name = read_user(fields), optional_text(fields, "payload"), optional_text(fields, "name")
        fields.check()
        self._people.start(user, payload, name)
        return web.Response(status=204)

    async def _stop(self, request: web.Request) -> web.Response:
        self._people.stop(await read_only_user(request))
        return web.Response(status=204)

    async def _write(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, text, chat, name = (
            read_user(fields),
            fields.text("text"),
            read_group(fields) or 0,
            optional_text(fields, "name"),
        )
        quoted = optional_text(fields, "reply_to")
        fields.check()
        message = found(self._people.write, user, text, chat, name=name, reply_to=quoted)
        return web.json_response({"message": message})

    async def _press(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, message, button = read_user(fields), fields.text("message"), fields.text("button")
        read_group(fields)  # the message names its chat
        fields.check()
        return web.json_response({"query": found(self._people.press, user, message, button)})

    async def _share_contact(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, phone = read_user(fields), fields.text("phone")
        fields.check()
        return web.json_response({"message": self._people.share_contact(user, phone)})

    async def _join(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, chat = read_user(fields), read_group(fields) or 0
        if not chat:
            fields.add_error("chat", "missing", "must be the id of a group")
        fields.check()
        self._people.join(user, chat)
        return web.Response(status=204)

    async def _leave(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, chat = read_user(fields), read_group(fields) or 0
        fields.check()
        self._people.leave(user, chat)
        return web.Response(status=204)
