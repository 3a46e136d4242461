"""I31: a message is in one thread, once, and the lists of its inbox name the thread with its last message and while
somebody has not read it. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.audit.invariants.invariant import Violation
from core.redis.keys import KEYS

_RULE = "I31"
_WHY = "which of the two is right is unknown"


@dataclass(frozen=True, slots=True)
class ThreadSnapshot:
    """One atomic read. `listed`, `unread_listed`: the scores in the lists of the inbox, None if it is not in them.
    `has_unread`: the inbox has unread threads. `events`: event → number; `messages`: number → (ms, event).
    """

    last: int
    newest: int
    unread: int
    listed: int | None
    unread_listed: int | None
    has_unread: bool
    events: dict[str, int]
    messages: dict[int, tuple[int, str]]

    @classmethod
    def read(cls, row: Sequence[Any]) -> "ThreadSnapshot | None":
        """Return what `audit_thread` has read; None if the thread is gone."""
        if not row:
            return None
        last, newest, unread, listed, unread_listed, has_unread, entries = row
        events, messages = dict[str, int](), dict[int, tuple[int, str]]()
        for entry in entries:
            name, *words = entry.split(" ")
            kind, _, rest = name.partition(":")
            if kind == "event":
                events[rest] = int(words[0])
            else:
                messages[int(rest)] = (int(words[0] or 0), words[-1])
        numbers = int(last), int(newest or 0), int(unread)
        return cls(*numbers, _score(listed), _score(unread_listed), bool(int(has_unread)), events, messages)


def _score(text: str | None) -> int | None:
    return None if text is None else int(float(text))


def thread_violations(key: str, seen: ThreadSnapshot) -> Iterator[Violation]:
    named = {event: number for number, (_, event) in seen.messages.items()}
    if named != seen.events or len(named) != len(seen.messages):
        wrong = sorted(set(named.items()) ^ set(seen.events.items()))[:3]
        yield Violation(_RULE, key, f"{len(seen.messages)} messages, of events {wrong}", "each event once", why=_WHY)
    if beyond := [number for number in seen.messages if number > seen.newest]:
        yield Violation(_RULE, key, f"the messages {beyond[:3]}", f"the newest up to {seen.newest}", why=_WHY)
    newest = seen.messages.get(seen.newest)
    if newest is None or newest[0] != seen.last:
        found = "none" if newest is None else f"of {newest[0]}"
        yield Violation(_RULE, key, f"the last message is {found}", f"of {seen.last}", why=_WHY)
    if seen.listed not in (None, seen.last):
        yield Violation(_RULE, key, f"listed in its inbox at {seen.listed}", f"at {seen.last}", why=_WHY)
    if seen.has_unread and (seen.unread > 0) != (seen.unread_listed is not None):
        is_listed = "not " if seen.unread_listed is None else ""
        found = f"{seen.unread} unread, and {is_listed}listed as unread"
        yield Violation(_RULE, key, found, "listed while any is unread", why=_WHY)


def twice_violation(event: str, thread: str, other: str) -> Violation:
    key = KEYS["thread"].at(int(thread.partition(".")[0]), thread)
    return Violation(_RULE, key, f"the event {event}, which is also in {other}", "in one thread", why=_WHY)
