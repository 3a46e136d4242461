"""Reads the input of the sandbox's HTTP API; one problem lists all errors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from sandbox.bot_api.state.parameters import Upload
from sandbox.events import ANY, Fault, Rule
from sandbox.faults import FAULTS
from sandbox.web.problems import FieldError, Problem, validation_failed

MAX_INTEGER = 2**31 - 1
MAX_MESSAGES = 10_000
MAX_WAIT = 30
MOST_BYTES = 21 * 2**20
"""Of a form: a file of 20 MB, as bots may read, with its fields."""
_WHOLE_NUMBER = re.compile(r"-?\d{1,16}", re.ASCII)


class Fields:
    """The fields of one object. They are taken one by one; errors are collected until `check`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._remaining = dict(values)
        self._errors: list[FieldError] = []

    def __contains__(self, name: str) -> bool:
        return name in self._remaining

    def add_error(self, path: str, code: str, message: str) -> None:
        self._errors.append(FieldError(path, code, message))

    def text(self, name: str, default: str | None = None) -> str:
        """Take a text that is not empty. An integer is converted to its digits."""
        value = self._remaining.pop(name, default)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value:
            self.add_error(name, "missing" if value is None else "invalid", "must be a text")
            return ""
        return value

    def choice(self, name: str, choices: Mapping[str, object]) -> str:
        """Take one of the known names."""
        value = self.text(name)
        if value and value not in choices:
            self.add_error(name, "unknown", f"must be one of {', '.join(choices)}")
        return value

    def integer(self, name: str, minimum: int, maximum: int) -> int | None:
        """Take an integer, or None if the field is absent. A query has its digits as text."""
        value = self._remaining.pop(name, None)
        if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
            value = int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum):
            return value
        self.add_error(name, "invalid", f"must be a whole number from {minimum} to {maximum}")
        return None

    def check(self) -> None:
        """Raise a Problem with all errors, including those for unknown fields."""
        for name in self._remaining:
            self.add_error(name, "unknown", "unknown field")
        if self._errors:
            raise validation_failed(self._errors)


async def read_body(request: web.Request) -> Fields:
    """Read a JSON object. Raises Problem."""
    try:
        value = await request.json()
    except (ValueError, LookupError, RecursionError):
        raise Problem(400, "INVALID_JSON", "the body is not JSON") from None
    if not isinstance(value, dict):
        raise Problem(422, "VALIDATION_FAILED", "the body is not a JSON object")
    return Fields(value)


async def read_form(request: web.Request) -> tuple[Fields, Upload]:
    """Read a form with a `file`, as `curl -F` sends it. Raises Problem."""
    values = dict(await request.clone(client_max_size=MOST_BYTES).post())
    file = values.pop("file", None)
    fields = Fields(values)
    if isinstance(file, web.FileField):
        return fields, Upload(file.filename, file.content_type, file.file.read())
    fields.add_error("file", "missing", "must be a file of a form")
    return fields, Upload("", "", b"")


def normalized_address(channel: str, address: str) -> str:
    """Return the address as the inbox has it: telephone numbers begin with a plus (a space in a query)."""
    return f"+{address.strip().lstrip('+')}" if channel == "sms" and address != ANY else address


def read_rule(fields: Fields) -> Rule:
    """Read a rule. Raises Problem."""
    channel = fields.choice("channel", FAULTS)
    kinds = FAULTS.get(channel, {})
    name = fields.choice("fault", kinds) if kinds else fields.text("fault")
    value = _value(fields, kinds[name].value if name in kinds else None)
    to, method = fields.text("address", ANY), fields.text("method", ANY)
    times = fields.integer("times", 1, MAX_INTEGER)
    fields.check()
    return Rule(channel, Fault(name, value), normalized_address(channel, to), method, times)


def _value(fields: Fields, meaning: str | None) -> int | None:
    value = fields.integer("value", 0, MAX_INTEGER)
    if meaning is not None and value is None:
        fields.add_error("value", "missing", f"this fault needs a number: {meaning}")
    if meaning is None and value is not None:
        fields.add_error("value", "unknown", "this fault takes no value")
    return value


@dataclass(frozen=True, slots=True)
class InboxQuery:
    """The query of GET /inbox.json."""

    channel: str | None
    address: str | None
    after: int
    limit: int
    text: str  # a part of the text, the subject or the address; "" for all
    wait: int  # seconds to wait for a message if there is none


def read_inbox_query(query: Mapping[str, str]) -> InboxQuery:
    """Read the query of GET /inbox.json. Raises Problem."""
    fields = Fields(query)
    channel = fields.choice("channel", FAULTS) if "channel" in query else None
    to = fields.text("address") if "address" in query else None
    after = fields.integer("after", 0, 10**11) or 0
    limit = fields.integer("limit", 1, MAX_MESSAGES) or 1000
    wait = fields.integer("wait", 0, MAX_WAIT) or 0
    part = fields.text("text") if "text" in query else ""
    fields.check()
    return InboxQuery(channel, normalized_address(channel, to) if channel and to else to, after, limit, part, wait)
