"""Lines of the live log, each once: a repeated iteration skips those that it has written before."""

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b

from jobs.recording.guard import Guard
from jobs.recording.places import place


class LiveLines:
    """Those of one attempt. A line is known by its text, the item in which it is written, and how often it was
    written.
    """

    def __init__(self, guard: Guard, steps: Mapping[str, str]) -> None:
        self._guard = guard
        self._steps = steps
        self._counts: Counter[str] = Counter()

    async def write(self, text: str) -> None:
        """Add a line, unless an earlier attempt at this iteration has. Raises as `Guard.check`."""
        name = "log\t" + blake2b(f"{place()}\n{text}".encode(errors="replace"), digest_size=8).hexdigest()
        self._counts[name] += 1
        if self._counts[name] > int(self._steps.get(name, 0)):
            await self._guard.record_line(text, name, str(self._counts[name]))
