"""The calls about the people of the inbox page and their chats."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict

from aiohttp import web

from sandbox.state import SandboxState
from sandbox.telegram.state.identities import MAX_ID
from sandbox.web.chats import Chats
from sandbox.web.input import MAX_WAIT, Fields, normalized_address, read_body
from sandbox.web.people import AddressTaken, People, Person, TooManyPeople
from sandbox.web.problems import Problem

_MAX_NAME = 100
_MAX_VK_ID = 2**31 - 1
_PHONE = re.compile(r"\+[0-9]{5,15}")
_MAIL = re.compile(r"[^\s@<>]{1,64}@[^\s@<>]{1,189}")


class PeopleRoutes:
    """A person is named by the number in the path."""

    def __init__(self, state: SandboxState, people: People, chats: Chats) -> None:
        self._state, self._people, self._chats = state, people, chats

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/people", self._list),
            web.post("/people", self._create),
            web.delete("/people/{number}", self._delete),
            web.get("/people/{number}/chats", self._show),
        ]

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"people": [asdict(person) for person in self._people.list()]})

    async def _create(self, request: web.Request) -> web.Response:
        name, addresses = read_person(await read_body(request))
        try:
            return web.json_response(asdict(self._people.create(name, **addresses)), status=201)
        except AddressTaken as error:
            raise Problem(409, "ADDRESS_TAKEN", str(error)) from None
        except TooManyPeople as error:
            raise Problem(409, "TOO_MANY_PEOPLE", str(error)) from None

    async def _delete(self, request: web.Request) -> web.Response:
        self._people.delete(self._person(request).number)
        return web.Response(status=204)

    async def _show(self, request: web.Request) -> web.Response:
        person, (after, wait) = self._person(request), _read_wait(request.query)
        if after == self._state.revision and wait:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._state.wait_for_change()
        revision = self._state.revision
        return web.json_response({"revision": revision, "person": asdict(person), "chats": self._chats.of(person)})

    def _person(self, request: web.Request) -> Person:
        number = request.match_info["number"]
        try:
            return self._people.get(int(number) if number.isdecimal() and len(number) < 10 else 0)
        except LookupError as error:
            raise Problem(404, "NOT_FOUND", str(error)) from None


def _read_wait(query: Mapping[str, str]) -> tuple[int, int]:
    """Return the revision that the reader knows, and how many seconds it waits for the next one. Raises Problem."""
    fields = Fields(query)
    after, wait = fields.integer("after", 0, 10**11), fields.integer("wait", 0, MAX_WAIT)
    fields.check()
    return after or 0, wait or 0


def read_person(fields: Fields) -> tuple[str, dict[str, str]]:
    """Return the name and the addresses of a new person, "" for those not given. Raises Problem."""
    name = fields.text("name").strip()
    if len(name) > _MAX_NAME:
        fields.add_error("name", "too_long", f"must have at most {_MAX_NAME} characters")
    addresses = {
        "telegram": _user_id(fields, "telegram", MAX_ID),
        "vk": _user_id(fields, "vk", _MAX_VK_ID),
        "max": _user_id(fields, "max", MAX_ID),
        "sms": _matching(fields, "sms", _PHONE, "must be a telephone number"),
        "email": _matching(fields, "email", _MAIL, "must be an e-mail address").lower(),
    }
    fields.check()
    if not any(addresses.values()):
        raise Problem(422, "NO_ADDRESS", "a person needs at least one address")
    return name, addresses


def _user_id(fields: Fields, name: str, maximum: int) -> str:
    return str(fields.integer(name, 1, maximum) or "")


def _matching(fields: Fields, name: str, form: re.Pattern[str], message: str) -> str:
    """Take a text of this form, or "" if the field is absent."""
    if name not in fields:
        return ""
    address = normalized_address(name, fields.text(name))
    if not form.fullmatch(address):
        fields.add_error(name, "invalid", message)
    return address
