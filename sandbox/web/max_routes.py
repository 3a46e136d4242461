"""The calls about people in MAX: what they do, and what their chats show."""

from typing import Any

from aiohttp import web

from sandbox.max import MaxServer
from sandbox.web.input import Fields, read_body
from sandbox.web.problems import Problem
from sandbox.web.shown_file import file_response

_LOWEST_CHAT, _HIGHEST_USER = -(2**52), 2**52


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
        user, chat = _user(fields), _group(fields)
        fields.check()
        return web.json_response(self._people.shown(user, chat))

    async def _file(self, request: web.Request) -> web.Response:
        file = _found(self._people.file, request.match_info["attachment"])
        return file_response(file.data, file.media_type)

    async def _start(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, payload, name = _user(fields), _optional(fields, "payload"), _optional(fields, "name")
        fields.check()
        self._people.start(user, payload, name)
        return web.Response(status=204)

    async def _stop(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user = _user(fields)
        fields.check()
        self._people.stop(user)
        return web.Response(status=204)

    async def _write(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, text, chat, name = _user(fields), fields.text("text"), _group(fields), _optional(fields, "name")
        fields.check()
        return web.json_response({"message": self._people.write(user, text, chat, name=name)})

    async def _press(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, message, button = _user(fields), fields.text("message"), fields.text("button")
        _group(fields)  # the message names its chat
        fields.check()
        return web.json_response({"query": _found(self._people.press, user, message, button)})

    async def _share_contact(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, phone = _user(fields), fields.text("phone")
        fields.check()
        return web.json_response({"message": self._people.share_contact(user, phone)})

    async def _join(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, chat = _user(fields), _group(fields)
        if not chat:
            fields.add_error("chat", "missing", "must be the id of a group")
        fields.check()
        self._people.join(user, chat)
        return web.Response(status=204)

    async def _leave(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, chat = _user(fields), _group(fields)
        fields.check()
        self._people.leave(user, chat)
        return web.Response(status=204)


def _user(fields: Fields) -> int:
    """Take the id of a person in MAX."""
    if "address" not in fields:
        fields.add_error("address", "missing", "must be a user id")
        return 0
    return fields.integer("address", 1, _HIGHEST_USER) or 0


def _group(fields: Fields) -> int:
    return fields.integer("chat", _LOWEST_CHAT, -1) or 0


def _optional(fields: Fields, name: str) -> str:
    return fields.text(name) if name in fields else ""


def _found(action: Any, *arguments: Any) -> Any:
    """Raises Problem if the message, button or file does not exist."""
    try:
        return action(*arguments)
    except LookupError as error:
        raise Problem(404, "NOT_FOUND", str(error)) from None
