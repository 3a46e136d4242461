"""The witnesses of every promotion, which report that none has begun: the Sentinels, or the other primaries of a
cluster.

Asked by `core.redis.pipelines.replicated_pipeline` before it acknowledges anything (docs/decisions/0157).

Sentinels: one promotes a replica when more than half of all have voted for it, and as an operator's command also
without votes. From the vote on, until all know the new primary, each voter has an epoch of its vote that is newer than
that of the last promotion that it knows, and the leader says that a fail-over is in progress. A vote that came to
nothing stays until the next promotion. The vote is read with the command by which Sentinels ask for it: with an epoch
of 0 none is given.

A cluster: a replica is promoted when more than half of the primaries have voted for it. One votes only while it takes
the old primary for failed, and does so for at least twice cluster-node-timeout, or until the slots have another owner.
A primary does not take itself for failed, so it is one that has not voted.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from redis.exceptions import RedisError

from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.cluster import Place, ShardMap
from core.redis.connection import Reply, ServerAddress, StoreConnection, Word
from core.redis.topology import SentinelSet

# Seconds for an answer, and from one attempt to reach a silent witness to the next.
_ANSWER = 1.0
_AGAIN = 0.5


class Witnesses(Protocol):
    """All that take part in promotions."""

    async def confirm(self, primary: ServerAddress) -> bool:
        """Return whether no promotion in place of this primary can have begun before this call."""

    async def close(self) -> None:
        """Close the connections."""


class Witness:
    """`is_silent`: it did not answer in time last. Nobody waits for such a one."""

    def __init__(self, address: ServerAddress) -> None:
        self.is_silent = False
        self._address = address
        self._turn = asyncio.Lock()
        self._connection: StoreConnection | None = None
        self._asking: set[asyncio.Task[list[Reply]]] = set()
        self._next = 0.0  # by time.monotonic

    def ask(self, commands: Sequence[Sequence[Word]]) -> "asyncio.Task[list[Reply]]":
        """Ask in a task: its result are the replies, errors as values, or nothing if none came in time."""
        task = asyncio.create_task(self._ask(commands), name=f"witness {self._address}")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        return task

    def try_again(self, commands: Sequence[Sequence[Word]]) -> None:
        """Find out beside everything else whether a silent one answers again."""
        if time.monotonic() >= self._next and not self._asking:
            self.ask(commands)

    async def _ask(self, commands: Sequence[Sequence[Word]]) -> list[Reply]:
        try:
            async with asyncio.timeout(_ANSWER), self._turn:
                replies = await (await self._open()).request_all(commands)
        except (RedisError, OSError, TimeoutError):
            self._next = time.monotonic() + _AGAIN
            self.is_silent = True
            self._drop()
            return []
        self.is_silent = False
        return replies

    async def _open(self) -> StoreConnection:
        if self._connection is None or self._connection.lost.done():
            self._connection = await StoreConnection.open(self._address)
        return self._connection

    def _drop(self) -> None:
        if self._connection:
            self._connection.close()

    async def close(self) -> None:
        await cancel_and_wait(*self._asking)
        self._drop()


async def ask_all(
    witnesses: Collection[Witness],
    commands: Sequence[Sequence[Word]],
    enough: Callable[[list[list[Reply]]], bool] = lambda _: False,
) -> list[list[Reply]]:
    """Return what those say that are not silent, as soon as it is `enough`, or all have answered."""
    for one in witnesses:
        if one.is_silent:
            one.try_again(commands)
    said: list[list[Reply]] = []
    for answer in asyncio.as_completed([one.ask(commands) for one in witnesses if not one.is_silent]):
        if replies := await answer:
            said.append(replies)
        if enough(said):
            break
    return said


_LEADS = "failover_in_progress"
# Milliseconds for which a Sentinel may wait for votes; then twice its failover-timeout, for the replica and its report.
_ELECTION_MS = 10_000


@dataclass(frozen=True, slots=True)
class Statement:
    """The reply of a Sentinel. `names`: the primary; `replaces`: what it is promoting a replica for; `epoch`: of the
    last promotion it knows; `has_voted`: for a promotion that may go on; `others`: the number of other Sentinels it
    knows.
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
        """Read what a Sentinel reports. Raises RedisError, LookupError or TypeError if it reports nothing."""
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


_COMMAND = ("CLUSTER", "NODES")
_FAILED = {"fail", "noaddr"}
# Words of a line of CLUSTER NODES before the slots: id, address, flags, primary, ping, pong, epoch, link.
_WORDS = 8


def is_sure_of_cluster(node: str, known: int, views: Collection[str]) -> bool:
    """Return whether no replica of this node can have been promoted. `node`: its id; `known`: the least number of
    primaries; `views`: the replies of other ones to CLUSTER NODES.
    """
    seen = [_primaries(view) for view in views]
    voters = max([known, *map(len, seen)])
    without_vote = 1 + sum(node in one and not one[node] & _FAILED and _votes(one) for one in seen)
    return without_vote >= voters - voters // 2


def _primaries(view: str) -> dict[str, set[str]]:
    """Return id → flags of the primaries that have slots."""
    lines = (line.split() for line in view.splitlines())
    found = {words[0]: {*words[2].split(",")} for words in lines if len(words) > _WORDS}
    return {node: flags for node, flags in found.items() if "master" in flags}


def _votes(primaries: dict[str, set[str]]) -> bool:
    """Return whether the node that says this is one of the primaries that have slots."""
    return any("myself" in flags for flags in primaries.values())


class ClusterWitnesses:
    """`shard_map` names the primaries."""

    def __init__(self, shard_map: ShardMap) -> None:
        self._map = shard_map
        self._known: dict[Place, Witness] = {}

    async def confirm(self, primary: ServerAddress) -> bool:
        ids = self._map.primary_ids()
        own = primary.host, primary.port
        if own not in ids:
            return False

        def enough(said: list[list[Reply]]) -> bool:
            return is_sure_of_cluster(ids[own], len(ids), [_text(reply) for (reply,) in said])

        return enough(await ask_all([self._at(place) for place in ids if place != own], [_COMMAND], enough))

    def _at(self, place: Place) -> Witness:
        if place not in self._known:
            assert self._map.cluster
            self._known[place] = Witness(ServerAddress.parse(self._map.cluster.url_of(place)))
        return self._known[place]

    async def close(self) -> None:
        await asyncio.gather(*(one.close() for one in self._known.values()))


def _text(reply: Reply) -> str:
    """Return a reply as text; "" for an error."""
    return reply if isinstance(reply, str) else ""


def witnesses_of(shard_map: ShardMap) -> Witnesses | None:
    """Return the witnesses of an address; None for a single server: what promotes its replicas is unknown."""
    if shard_map.cluster:
        return ClusterWitnesses(shard_map)
    sentinels = shard_map.of(0).sentinels
    return SentinelWitnesses(sentinels) if sentinels else None
