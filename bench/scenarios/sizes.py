"""Sizes of the parts of `bench scenarios`: full ones for figures, short ones to show that it runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """`updates`: people who write in one round, so that the bot sends `messages_per_second`. `backlog`: updates that
    wait when a rate begins. `runs`: events whose commands are counted; `stored`: runs that are stored meanwhile.
    `waiting`: runs that wait; `seconds`: how long their cost is measured.
    """

    updates: int = 200
    messages_per_second: float = 20.0
    rounds: int = 2
    backlog: int = 2_000
    runs: int = 500
    stored: int = 10_000
    waiting: int = 10_000
    seconds: float = 20.0


FULL = Sizes()
SHORT = Sizes(updates=20, messages_per_second=40.0, rounds=1, backlog=50, runs=50, stored=100, waiting=50, seconds=1.0)
