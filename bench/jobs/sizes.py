"""Sizes of the parts of `bench jobs`: full ones for figures, short ones to show that it runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """`jobs`: how many. `seconds`: how long the CPU of idle jobs and the lateness of busy ones are measured. `rate`:
    iterations per second of all busy jobs together; `takes`: seconds of each. `lease`: seconds until the jobs of a dead
    process are free. `updates_per_s`: what people write to the bot.
    """

    jobs: int = 10_000
    seconds: float = 30.0
    rate: float = 100.0
    takes: float = 0.5
    lease: int = 10
    updates_per_s: float = 25.0


FULL = Sizes()
SHORT = Sizes(jobs=60, seconds=2.0, rate=20.0, lease=1, updates_per_s=10.0)
