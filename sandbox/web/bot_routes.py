"""The calls about people who use the bot: what they do, and what their chat shows."""

from aiohttp import web

from sandbox.bot_api import BotApiServer
from sandbox.bot_api.messages.files import KINDS
from sandbox.bot_api.people_actions import PeopleActions
from sandbox.web.chat_fields import (
    HIGHEST_USER,
    found,
    optional_text,
    read_group,
    read_user,
    require_group,
)
from sandbox.web.input import Fields, read_body, read_form
from sandbox.web.shown_file import file_response, media_type_of


class BotRoutes:
    """`address` is the id of the person; `chat` is the id of a group, if the person acts there. `bot` is the token of
    a further bot to write to, to press a button of, to give a contact to or to block, and whose chat to show.
    """

    def __init__(self, bot_api: BotApiServer) -> None:
        self._bot_api = bot_api
        self._people, self._joining = bot_api.people, bot_api.joining

    def _people_of(self, fields: Fields) -> PeopleActions:
        """Return the actions of people with the bot that is named. Raises Problem if there is none."""
        return found(self._bot_api.people_of, optional_text(fields, "bot") or self._bot_api.token)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/chat/telegram-bot", self._show),
            web.get("/telegram-bot/files/{attachment}", self._file),
            web.post("/write/telegram-bot", self._write),
            web.post("/file/telegram-bot", self._send_file),
            web.post("/edit/telegram-bot", self._edit),
            web.post("/press/telegram-bot", self._press),
            web.post("/inline/telegram-bot", self._ask_inline),
            web.get("/inline/telegram-bot", self._inline_answer),
            web.post("/contact/telegram-bot", self._share_contact),
            web.post("/block/telegram-bot", self._block),
            web.post("/group/telegram-bot", self._set_up_group),
            web.delete("/topic/telegram-bot", self._delete_topic),
            web.post("/join/telegram-bot", self._join),
            web.post("/leave/telegram-bot", self._leave),
            web.post("/promote/telegram-bot", self._promote),
        ]

    async def _show(self, request: web.Request) -> web.Response:
        fields = Fields(request.query)
        chat, people = _chat(fields, "address"), self._people_of(fields)
        fields.check()
        return web.json_response(found(people.shown, chat))

    async def _file(self, request: web.Request) -> web.Response:
        fields = Fields(request.query)
        people = self._people_of(fields)
        fields.check()
        name, content = found(people.file, request.match_info["attachment"])
        return file_response(content, media_type_of(name))

    async def _write(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, text, chat = read_user(fields), fields.text("text"), read_group(fields)
        person = {name: fields.text(name) for name in ("name", "username", "language") if name in fields}
        people, quoted = self._people_of(fields), fields.integer("reply_to", 1, 2**31)
        topic = fields.integer("topic", 1, 2**31) or 0
        fields.check()
        found(people.set_person, user, **person)
        message = (
            found(people.reply, user, quoted, text, chat) if quoted else found(people.write, user, text, chat, topic)
        )
        return web.json_response({"message": message})

    async def _send_file(self, request: web.Request) -> web.Response:
        fields, file = await read_form(request)
        user, chat, text = read_user(fields), read_group(fields), optional_text(fields, "text")
        usual = "photo" if file.content_type in ("image/jpeg", "image/png") else "document"
        kind = fields.choice("kind", dict.fromkeys(KINDS)) if "kind" in fields else usual
        people, quoted = self._people_of(fields), fields.integer("reply_to", 1, 2**31) or 0
        fields.check()
        caption = {"caption": text} if text else {}
        return web.json_response(
            {"message": found(people.send_file, user, kind, file, chat, reply_to=quoted, **caption)}
        )

    async def _press(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, message, chat = read_user(fields), fields.integer("message", 1, 2**31) or 0, read_group(fields)
        button, people = fields.text("button"), self._people_of(fields)
        fields.check()
        return web.json_response({"query": found(people.press, user, message, button, chat)})

    async def _edit(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, message, chat = read_user(fields), fields.integer("message", 1, 2**31) or 0, read_group(fields)
        text = fields.text("text")
        fields.check()
        found(self._people.edit, user, message, text, chat)
        return web.Response(status=204)

    async def _ask_inline(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, text = read_user(fields), optional_text(fields, "text")
        fields.check()
        return web.json_response({"query": found(self._people.ask_inline, user, text)})

    async def _inline_answer(self, request: web.Request) -> web.Response:
        return web.json_response(found(self._people.answer, request.query.get("query", "")))

    async def _share_contact(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, phone = read_user(fields), optional_text(fields, "phone")
        owner, people = fields.integer("owner", 1, HIGHEST_USER) or 0, self._people_of(fields)
        fields.check()
        return web.json_response({"message": found(people.share_contact, user, phone, owner)})

    async def _block(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, people = read_user(fields), self._people_of(fields)
        fields.check()
        found(people.block, user)
        return web.Response(status=204)

    async def _set_up_group(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        chat, names = (
            require_group(fields),
            {name: fields.text(name) for name in ("title", "username") if name in fields},
        )
        creator, topics = fields.integer("creator", 1, HIGHEST_USER) or 0, bool(fields.integer("topics", 0, 1))
        fields.check()
        found(self._joining.set_up, chat, creator=creator, topics=topics, **names)
        return web.Response(status=204)

    async def _delete_topic(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        chat, topic = require_group(fields), fields.integer("topic", 1, 2**31) or 0
        fields.check()
        found(self._people.delete_topic, chat, topic)
        return web.Response(status=204)

    async def _join(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, link = read_user(fields), optional_text(fields, "link")
        chat = 0 if link else require_group(fields)
        added_by = fields.integer("added_by", 1, HIGHEST_USER) or 0
        fields.check()
        joined = found(self._joining.join, user, chat, link=link, added_by=added_by)
        return web.json_response({"joined": joined})

    async def _leave(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, chat = read_user(fields), require_group(fields)
        fields.check()
        found(self._joining.leave, user, chat)
        return web.Response(status=204)

    async def _promote(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        user, chat, by = read_user(fields), require_group(fields), fields.integer("by", 1, HIGHEST_USER) or 0
        title = optional_text(fields, "title")
        fields.check()
        found(self._joining.promote, user, chat, by=by, title=title)
        return web.Response(status=204)


def _chat(fields: Fields, name: str) -> int:
    """Take the id of a chat from a query."""
    text = fields.text(name)
    if text and not text.removeprefix("-").isdecimal():
        fields.add_error(name, "invalid", "must be a chat id")
        return 0
    return int(text[:20]) if text else 0
