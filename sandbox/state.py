"""The state that the provider servers share: messages received and written, rules for faults, counters.

It belongs to one event loop and is not safe for threads.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Container
from dataclasses import replace

from sandbox.events import ANY, Fault, ReceivedMessage, Rule
from sandbox.inbox import DEFAULT_CAPACITY, Inbox, Written
from sandbox.magic_recipients import MAGIC_RECIPIENTS

__all__ = ["ANY", "Fault", "ReceivedMessage", "Rule", "SandboxState"]


class Wakeup:
    """Wakes all tasks that wait, each time."""

    def __init__(self) -> None:
        self._next: asyncio.Event | None = None

    def notify(self) -> None:
        if self._next is not None:
            self._next.set()
            self._next = None

    async def wait(self) -> None:
        if self._next is None:
            self._next = asyncio.Event()
        await self._next.wait()


class SandboxState:
    """The inbox, the rules and the counters of one sandbox. `revision` counts the changes that a chat may show."""

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self.messages = Inbox(capacity)
        self.written = Written()
        self.revision = 0
        self._rules: dict[int, Rule] = {}
        self._last_rule = 0
        self._counters: Counter[tuple[str, str]] = Counter()
        self._next_message, self._next_change = Wakeup(), Wakeup()

    # messages

    def receive(
        self,
        channel: str,
        address: str,
        text: str,
        *,
        reference: str,
        random_id: int | None = None,
        subject: str = "",
    ) -> ReceivedMessage:
        """Put a message into the inbox and wake the tasks in `wait_for_message`."""
        number = self.messages.newest + 1
        message = ReceivedMessage(number, channel, address, text, reference, random_id, time.time(), subject)
        self.messages.append(message)
        self._next_message.notify()
        self.changed()
        return message

    def inbox(self, channel: str | None = None, address: str | None = None) -> list[ReceivedMessage]:
        """Return the messages received, oldest first, filtered by channel and address."""
        return self.messages.read(channel, address)

    async def wait_for_message(self) -> None:
        """Wait until the next message is received."""
        await self._next_message.wait()

    # the chats of people

    def write(self, channel: str, address: str, text: str) -> None:
        """Keep what a person wrote, for the person's chat."""
        self.written.append(channel, address, text, time.time())
        self.changed()

    def mark_read(self, channel: str, address: str) -> None:
        """Keep that a person has read all messages received so far."""
        self.messages.mark_read(channel, address)
        self.changed()

    def changed(self) -> None:
        """Wake the tasks in `wait_for_change`: a chat may show something new."""
        self.revision += 1
        self._next_change.notify()

    async def wait_for_change(self) -> None:
        """Wait until the next change of a chat."""
        await self._next_change.wait()

    # faults

    def fault(self, channel: str, address: str, method: str, only: Container[str] | None = None) -> Fault | None:
        """Return the fault for this call: of the oldest rule that matches, otherwise of the magic recipient.

        A rule that is used counts down. `only` names the faults that the caller can inject; others are skipped and do
        not count down.
        """
        for number, rule in self._rules.items():
            if rule.matches(channel, address, method) and (only is None or rule.fault.name in only):
                return self._use(number, rule)
        fault = MAGIC_RECIPIENTS.get(channel, {}).get(address)
        return fault if fault is not None and (only is None or fault.name in only) else None

    def _use(self, number: int, rule: Rule) -> Fault:
        if rule.times is not None and rule.times <= 1:
            del self._rules[number]
        elif rule.times is not None:
            self._rules[number] = replace(rule, times=rule.times - 1)
        return rule.fault

    def add_rule(self, rule: Rule) -> int:
        """Add a rule and return its number. Older rules apply first."""
        self._last_rule += 1
        self._rules[self._last_rule] = rule
        return self._last_rule

    def rules(self) -> dict[int, Rule]:
        """Return the rules in force, by number; `times` is what is left of it."""
        return dict(self._rules)

    def clear_rules(self) -> None:
        self._rules.clear()

    # counters

    def count(self, channel: str, name: str, by: int = 1) -> None:
        """Add to a counter shown in /state.json, such as ("vk", "execute")."""
        self._counters[channel, name] += by

    def counter(self, channel: str, name: str) -> int:
        return self._counters[channel, name]

    def counters(self) -> dict[str, dict[str, int]]:
        """Return all counters: channel → name → count."""
        table: dict[str, dict[str, int]] = {}
        for (channel, name), count in sorted(self._counters.items()):
            table.setdefault(channel, {})[name] = count
        return table
