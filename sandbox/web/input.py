"""Reads what the sandbox's own calls are given; everything that is wrong is told at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from sandbox.events import ANY, Fault, Rule
from sandbox.faults import FAULTS
from sandbox.web.problems import Flaw, Problem, invalid

LARGEST = 2**31 - 1
MOST_MESSAGES = 10_000
LONGEST_WAIT = 30


class Fields:
    """The fields of one object; takes them one by one and collects the flaws."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._left = dict(given)
        self._flaws: list[Flaw] = []

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def flaw(self, path: str, code: str, message: str) -> None:
        self._flaws.append(Flaw(path, code, message))

    def text(self, name: str, otherwise: str | None = None) -> str:
        """Take a text that is not empty; a whole number counts as its digits."""
        value = self._left.pop(name, otherwise)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value:
            self.flaw(name, "missing" if value is None else "invalid", "a text is wanted")
            return ""
        return value

    def choice(self, name: str, among: Mapping[str, object]) -> str:
        """Take one of the known names."""
        value = self.text(name)
        if value and value not in among:
            self.flaw(name, "unknown", f"must be one of {', '.join(among)}")
        return value

    def integer(self, name: str, least: int, most: int) -> int | None:
        """Take a whole number, also as digits in a text (a query has nothing else), or nothing."""
        value = self._left.pop(name, None)
        if isinstance(value, str) and value.isdecimal() and len(value) < 12:
            value = int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most):
            return value
        self.flaw(name, "invalid", f"a whole number from {least} to {most} is wanted")
        return None

    def check(self) -> None:
        """Raise the problem with all flaws, unknown fields included."""
        for name in self._left:
            self.flaw(name, "unknown", "there is no such field")
        if self._flaws:
            raise invalid(self._flaws)


async def body(request: web.Request) -> Fields:
    """Read a JSON object."""
    try:
        given = await request.json()
    except (ValueError, LookupError, RecursionError):
        raise Problem(400, "INVALID_JSON", "the body is not JSON") from None
    if not isinstance(given, dict):
        raise Problem(422, "VALIDATION_FAILED", "the body is not a JSON object")
    return Fields(given)


def address(channel: str, given: str) -> str:
    """Return an address in the form of the inbox: telephone numbers begin with a plus (a query turns it to a space)."""
    return f"+{given.strip().lstrip('+')}" if channel == "sms" and given != ANY else given


def rule(fields: Fields) -> Rule:
    """Read a rule; raises the problem of everything that is wrong with it."""
    channel = fields.choice("channel", FAULTS)
    kinds = FAULTS.get(channel, {})
    name = fields.choice("fault", kinds) if kinds else fields.text("fault")
    value = _value(fields, kinds[name].value if name in kinds else None)
    to, method = fields.text("address", ANY), fields.text("method", ANY)
    times = fields.integer("times", 1, LARGEST)
    fields.check()
    return Rule(channel, Fault(name, value), address(channel, to), method, times)


def _value(fields: Fields, meaning: str | None) -> int | None:
    value = fields.integer("value", 0, LARGEST)
    if meaning is not None and value is None:
        fields.flaw("value", "missing", f"this fault wants a number: {meaning}")
    if meaning is None and value is not None:
        fields.flaw("value", "unknown", "this fault takes no value")
    return value


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages a reader of the inbox wants."""

    channel: str | None
    address: str | None
    after: int
    limit: int
    wait: int  # seconds to wait for one when there is none


def wanted(query: Mapping[str, str]) -> Wanted:
    """Read the query of the inbox."""
    fields = Fields(query)
    channel = fields.choice("channel", FAULTS) if "channel" in query else None
    to = fields.text("address") if "address" in query else None
    after = fields.integer("after", 0, 10**11) or 0
    limit = fields.integer("limit", 1, MOST_MESSAGES) or 1000
    wait = fields.integer("wait", 0, LONGEST_WAIT) or 0
    fields.check()
    return Wanted(channel, address(channel, to) if channel and to else to, after, limit, wait)
