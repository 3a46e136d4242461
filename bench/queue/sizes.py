"""Tasks of the parts of `bench queue`: full sizes for figures, short ones to show that it runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """`locked`: lanes; the others: tasks. `samples`: claims that are timed. `latency_s`: seconds for which
    tasks are put.
    """

    locked: tuple[int, ...] = (1, 1_000, 100_000)
    deferred: int = 1_000_000
    lane: int = 100_000
    samples: int = 2_000
    due: tuple[int, ...] = (1_000, 100_000)
    cancelled: int = 100_000
    drained: int = 100_000
    weighed: int = 20_000
    audited: int = 100_000
    put: int = 40_000
    bulk: int = 100_000
    worked: int = 60_000
    rounds: int = 2
    trivial_s: float = 2.0
    latency_s: float = 20.0
    quiet_s: float = 5.0


FULL = Sizes()
SHORT = Sizes(
    locked=(1, 100, 1_000),
    deferred=5_000,
    lane=1_000,
    samples=100,
    due=(200, 2_000),
    cancelled=1_000,
    drained=1_000,
    weighed=1_000,
    audited=1_000,
    put=500,
    bulk=2_000,
    worked=1_000,
    rounds=1,
    trivial_s=0.2,
    latency_s=1.0,
    quiet_s=0.5,
)
