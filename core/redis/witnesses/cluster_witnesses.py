"""Asks the other primaries of a cluster whether a promotion may have begun.

A replica is promoted when more than half of the primaries have voted for it. One votes only while it takes the old
primary for failed, and does so for at least twice cluster-node-timeout, or until the slots have another owner. A
primary does not take itself for failed, so it is one that has not voted.
"""

import asyncio
from collections.abc import Collection

from core.redis.cluster import ShardMap
from core.redis.cluster.cluster_nodes import Place
from core.redis.connection import Reply, ServerAddress
from core.redis.witnesses.witness import Witness, ask_all

_COMMAND = ("CLUSTER", "NODES")
_FAILED = {"fail", "noaddr"}
# Words of a line of CLUSTER NODES before the slots: id, address, flags, primary, ping, pong, epoch, link.
_WORDS = 8


def is_sure(node: str, known: int, views: Collection[str]) -> bool:
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
            return is_sure(ids[own], len(ids), [_text(reply) for (reply,) in said])

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
