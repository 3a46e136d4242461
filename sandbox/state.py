"""The world that the provider servers share: what people received, who meets with which failure, what was counted.

It runs inside one event loop and is not safe for threads.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Container
from dataclasses import replace

from sandbox.events import ANY, Fault, Received, Rule
from sandbox.inbox import KEPT, Inbox
from sandbox.magic_recipients import MAGIC

__all__ = ["ANY", "Fault", "Received", "Rule", "World"]


class World:
    """People, their inboxes and the failures ordered for them."""

    def __init__(self, kept: int = KEPT) -> None:
        self.messages = Inbox(kept)
        self._rules: dict[int, Rule] = {}
        self._last_rule = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._news: asyncio.Event | None = None

    # what people received

    def receive(
        self, channel: str, address: str, text: str, *, reference: str, random_id: int | None = None
    ) -> Received:
        """Put a message into somebody's inbox and tell those who wait for news."""
        number = self.messages.newest + 1
        message = Received(number, channel, address, text, reference, random_id, time.time())
        self.messages.append(message)
        self._tell()
        return message

    def inbox(self, channel: str | None = None, address: str | None = None) -> list[Received]:
        """Return what was received, oldest first, of one channel or address or of all."""
        return self.messages.read(channel, address)

    async def news(self) -> None:
        """Wait until the next message is received."""
        if self._news is None:
            self._news = asyncio.Event()
        await self._news.wait()

    def _tell(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None

    # failures

    def fault(self, channel: str, address: str, method: str, only: Container[str] | None = None) -> Fault | None:
        """Return what befalls this call: the first rule that matches (it counts down), then the magic recipient.

        `only` names the faults that the asking layer can play; others are passed over and not counted down.
        """
        for number, rule in self._rules.items():
            if rule.matches(channel, address, method) and (only is None or rule.fault.name in only):
                return self._strike(number, rule)
        fault = MAGIC.get(channel, {}).get(address)
        return fault if fault is not None and (only is None or fault.name in only) else None

    def _strike(self, number: int, rule: Rule) -> Fault:
        if rule.times is not None and rule.times <= 1:
            del self._rules[number]
        elif rule.times is not None:
            self._rules[number] = replace(rule, times=rule.times - 1)
        return rule.fault

    def add_rule(self, rule: Rule) -> int:
        """Order a failure; returns the number by which it is listed. Older rules strike first."""
        self._last_rule += 1
        self._rules[self._last_rule] = rule
        return self._last_rule

    def rules(self) -> dict[int, Rule]:
        """Return the rules that can still strike, by number, with what is left of `times`."""
        return dict(self._rules)

    def clear_rules(self) -> None:
        self._rules.clear()

    # counters

    def count(self, channel: str, what: str, by: int = 1) -> None:
        """Add to a counter shown in /state.json, e.g. ("vk", "execute")."""
        self._counts[channel, what] += by

    def counted(self, channel: str, what: str) -> int:
        return self._counts[channel, what]

    def counters(self) -> dict[str, dict[str, int]]:
        """Return all counters: channel → what → how often."""
        table: dict[str, dict[str, int]] = {}
        for (channel, what), times in sorted(self._counts.items()):
            table.setdefault(channel, {})[what] = times
        return table
