"""Sizes of the parts of `bench people`: full ones for figures, short ones to show that it runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """`imported`: people in the file. `members`: people of the supergroup; `per_group`: of each of its groups. `sends`:
    deliveries of each way in a round.
    """

    imported: int = 100_000
    members: int = 10_000
    per_group: int = 250
    expansions: int = 7
    sends: int = 8_000
    rounds: int = 5


FULL = Sizes()
SHORT = Sizes(imported=500, members=200, per_group=50, expansions=2, sends=100, rounds=1)
