"""Checks of a cluster for doctor: whether its nodes answer and agree, and whether each shard has a primary."""

import asyncio
import re
from collections.abc import Sequence

from redis.exceptions import RedisError

from cli.commands.start.finding import Finding
from core.errors import FunctionFault
from core.redis.cluster.cluster_nodes import ClusterNodes, ClusterView, Place, view_of
from core.redis.store import Store

_RUNBOOK = "docs/runbook.md"
_OPEN = re.compile(r"\[(\d+)-[<>]-\w+\]")
"""A slot that moves key by key, in CLUSTER NODES."""


async def check_cluster(store: Store, nodes: ClusterNodes) -> Finding:
    places = sorted(store.shard_map.known_places)
    seen = dict(zip(places, await asyncio.gather(*(_seen(nodes, place) for place in places)), strict=True))
    views = [view for view in seen.values() if isinstance(view, ClusterView)]
    faults = [f"{host}:{port} {what}" for (host, port), what in seen.items() if isinstance(what, str)]
    lost = [shard for shard in range(store.shards) if not _is_owned(store.shard_map.slot_of(shard), views)]
    if lost:
        faults.insert(0, f"shards {', '.join(map(str, lost))} have no primary")
    if views and (disagreeing := len({_owners(view) for view in views}) - 1):
        faults.append(f"{disagreeing} other views of the slots")
    if moving := await _moving(store):
        faults.append(f"slots {', '.join(moving)} move key by key: their shards wait")
    detail = f"{len(store.shard_map.primaries())} primaries, {len(places)} nodes, {store.shards} shards"
    if not faults:
        return Finding("cluster", True, detail)
    return Finding("cluster", False if lost or moving else None, f"{detail}; {'; '.join(faults)}", _RUNBOOK)


async def _seen(nodes: ClusterNodes, place: Place) -> ClusterView | str:
    """Return what a node sees, or why it does not answer."""
    try:
        return await view_of(nodes, place)
    except (RedisError, OSError, TimeoutError) as fault:
        return f"does not answer ({str(fault) or type(fault).__name__})"


def _owners(view: ClusterView) -> frozenset[tuple[int, int, Place]]:
    return frozenset((one.first, one.last, one.owner) for one in view.slots)


def _is_owned(slot: int, views: Sequence[ClusterView]) -> bool:
    return any(view.owner_of(slot) for view in views)


async def _moving(store: Store) -> list[str]:
    """Return the slots whose keys are being moved one by one. Each primary names only its own."""
    try:
        texts = await store.command_everywhere("CLUSTER", "NODES")
    except FunctionFault:
        return []
    return sorted({slot for text in texts.values() for slot in _OPEN.findall(str(text))})
