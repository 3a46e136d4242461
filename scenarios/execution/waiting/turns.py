"""How long a run that waits keeps the turn of its person: until then no later event of the person is processed. Pure.

A run waits for its own answers, for a broadcast (`send` with `to`) or for a slow action. Counted from the arrival of
the event, so an event is held up by those before it for no longer than that, however many they are.
"""

from collections.abc import Iterable
from datetime import timedelta

from core.queue import Suspend
from scenarios.context import Asking, Waiting
from scenarios.execution.waiting.waits import WaitsFor

FOR_ANSWERS = timedelta(minutes=10)
"""A later answer could not arrive before them either: the messages of a chat keep their order."""

FOR_OTHERS = timedelta(minutes=1)
"""The lease of broadcasts and slow actions, which concern more than the person and may take hours."""

_AGAIN = timedelta(hours=1)
"""A run without a turn is looked at again after this time. It is woken before, as soon as what it waits for ends."""


def suspension(run: str, waits: Iterable[WaitsFor], age: timedelta, now: int) -> Suspend:
    """Return what the task of the event does meanwhile. `age`: since the event arrived. `now`: ms."""
    waits = list(waits)
    if due := [one.due for one in waits if isinstance(one, Asking)]:  # the answer is the next in the lane
        return Suspend(timedelta(milliseconds=max(min(due) - now, 0)), leaves_lane=True, checkpoint=run)
    longest = FOR_ANSWERS if all(isinstance(one, Waiting) and one.one for one in waits) else FOR_OTHERS
    if age < longest:
        return Suspend(longest - age, checkpoint=run)
    return Suspend(_AGAIN, leaves_lane=True, checkpoint=run)
