"""Reads what the calls about people in chats have in common: the person, the group, optional texts."""

from collections.abc import Callable
from typing import Any, TypeVar

from aiohttp import web

from sandbox.web.input import Fields, read_body
from sandbox.web.problems import Problem

HIGHEST_USER = 2**52
_LOWEST_CHAT = -(2**52)

T = TypeVar("T")


def read_user(fields: Fields) -> int:
    """Take the id of the person who acts."""
    if "address" not in fields:
        fields.add_error("address", "missing", "must be a user id")
        return 0
    return fields.integer("address", 1, HIGHEST_USER) or 0


async def read_only_user(request: web.Request) -> int:
    """Read a body that has the id of a person and nothing else. Raises Problem."""
    fields = await read_body(request)
    user = read_user(fields)
    fields.check()
    return user


def read_group(fields: Fields) -> int | None:
    """Take the id of a group; None if it is absent."""
    return fields.integer("chat", _LOWEST_CHAT, -1)


def require_group(fields: Fields) -> int:
    """Take the id of a group, which must be there."""
    if "chat" not in fields:
        fields.add_error("chat", "missing", "must be the id of a group")
    return read_group(fields) or 0


def optional_text(fields: Fields, name: str) -> str:
    """Take a text; "" if it is absent."""
    return fields.text(name) if name in fields else ""


def found(action: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Call an action of a person. Raises Problem if the person, message, button or file does not exist."""
    try:
        return action(*arguments, **named)
    except LookupError as error:
        raise Problem(404, "NOT_FOUND", str(error)) from None
