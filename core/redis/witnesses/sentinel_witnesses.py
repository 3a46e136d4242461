"""Asks the Sentinels whether a promotion may have begun.

A Sentinel promotes a replica when more than half of all have voted for it, and as an operator's command also without
votes. From the vote on, until all know the new primary, each voter has an epoch of its vote that is newer than that of
the last promotion that it knows, and the leader says that a fail-over is in progress. A vote that came to nothing stays
until the next promotion.

The vote is read with the command by which Sentinels ask for it: with an epoch of 0 none is given.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError

from core.redis.connection import Reply, ServerAddress
from core.redis.sentinels import SentinelSet
from core.redis.witnesses.witness import Witness, ask_all

_LEADS = "failover_in_progress"
# Milliseconds for which a Sentinel may wait for votes; then twice its failover-timeout, for the replica and its report.
_ELECTION_MS = 10_000

Place = tuple[str, int]
"""Host and port of a server, as Sentinels name it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a Sentinel says. `names`: the primary; `replaces`: what it is promoting a replica for; `epoch`: of the last
    promotion it knows; `has_voted`: for a promotion that may go on; `others`: the number of other Sentinels it knows.
    """

    names: Place
    replaces: Place | None = None
    epoch: int = 0
    has_voted: bool = False
    others: int = 2


def is_sure(primary: Place, statements: Collection[Statement]) -> bool:
    """Return whether no promotion in place of this primary can have begun before the Sentinels said this.

    Without a vote of half of them none has a majority. If all have answered, the leader would be among them.
    """
    newest = max((one.epoch for one in statements if one.names == primary), default=0)
    current = [one for one in statements if one.names == primary or one.epoch >= newest]  # older ones are out of date
    if any(one.names != primary or one.replaces == primary for one in current):
        return False
    voters = 1 + max((one.others for one in current), default=0)
    without_vote = sum(not one.has_voted for one in current)
    return len(current) >= voters or without_vote >= voters - voters // 2


class SentinelWitnesses:
    """`clock`: seconds."""

    def __init__(self, sentinels: SentinelSet, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = sentinels.name
        self._witnesses = [Witness(one) for one in sentinels.sentinels]
        self._clock = clock
        self._votes: dict[int, float] = {}  # epoch → when a vote in it was seen first

    async def confirm(self, primary: ServerAddress) -> bool:
        place = primary.host, primary.port
        replies = await ask_all(
            self._witnesses,
            [
                ("SENTINEL", "IS-MASTER-DOWN-BY-ADDR", *place, 0, "none"),
                ("SENTINEL", "MASTER", self._name),
                ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name),
                ("SENTINEL", "MYID"),
            ],
        )
        statements = {}  # one that the URL names twice counts once
        for number, (*said, own) in enumerate(replies):
            with suppress(RedisError, LookupError, TypeError):  # it refuses, or does not know the name
                statements[number if isinstance(own, RedisError) else own] = self.read(*said)
        return is_sure(place, statements.values())

    def read(self, vote: Reply, facts: Reply, named: Reply) -> Statement:
        """Read what a Sentinel says. Raises RedisError, LookupError or TypeError if it says nothing."""
        if isinstance(facts, RedisError):
            raise facts
        host, port = named
        listed = str(facts["ip"]), int(facts["port"])
        return Statement(
            names=(str(host), int(port)),
            replaces=listed if _LEADS in facts["flags"] else None,
            epoch=int(facts["config-epoch"]),
            has_voted=isinstance(vote, RedisError) or self._goes_on(int(vote[2]), facts),
            others=int(facts["num-other-sentinels"]),
        )

    def _goes_on(self, vote: int, facts: Mapping[str, Any]) -> bool:
        """Return whether a vote may still lead to a promotion: it has not yet, and its time is not over."""
        if vote <= int(facts["config-epoch"]):
            return False
        longest = (_ELECTION_MS + 2 * int(facts["failover-timeout"])) / 1000
        return self._clock() - self._votes.setdefault(vote, self._clock()) <= longest

    async def close(self) -> None:
        await asyncio.gather(*(one.close() for one in self._witnesses))
