"""Several primaries: the nodes of a cluster (docs/cluster.md), and which primary has which shard.

    redis+cluster://user:password@host:port,host:port     some nodes of the cluster; they name the others

User, password and options are those of every node. A single server, or the primary that Sentinels name, is a cluster
with one primary that has every shard.

The map is read from the nodes at the start, and again whenever a call or a connection shows that it is old: MOVED, a
lost connection, a subscription that the server closed. One reading at a time serves all that need it. A MOVED names the
new owner of one slot, which is followed before anything is read. The map may be wrong at any moment: a node refuses
what it does not own.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from redis.crc import key_slot
from redis.exceptions import AuthenticationError, ResponseError

from core.redis.connection import Reply, ServerAddress, StoreConnection
from core.redis.keys import KEYS
from core.redis.topology import ANSWER, PrimaryNotFound, Topology, of_majority, server_places

CLUSTER_FORM = "redis+cluster://user:password@host:6379,host:6379"

_URL = re.compile(r"(rediss?)\+cluster://(?:([^/?]*)@)?([^/?@]*)(?:/0?)?(?:\?(.*))?")
_PORT = 6379

Place = tuple[str, int]
"""Host and port of a node."""

_EPOCH = re.compile(r"cluster_current_epoch:(\d+)")


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """The addresses of the nodes of a cluster. `places`: host and port of those that the URL names; some of them are
    enough to find the others.
    """

    places: tuple[Place, ...]
    login: str = field(repr=False)
    scheme: str
    options: str = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "ClusterNodes":
        """Parse a URL of the form above. Raises ValueError, which names no secret."""
        if not (found := _URL.fullmatch(url)):
            raise ValueError(f"a URL of a cluster has the form {CLUSTER_FORM}, and its only database is 0")
        scheme, login, places, query = (part or "" for part in found.groups())
        servers = tuple(server_places(places, "node", _PORT))
        nodes = cls(servers, f"{login}@" if login else "", scheme, query)
        for place in servers:
            ServerAddress.parse(nodes.url_of(place))
        return nodes

    def url_of(self, place: Place) -> str:
        """Return the URL of a node, with its password."""
        host, port = place
        host = f"[{host}]" if ":" in host and host[0] != "[" else host
        return f"{self.scheme}://{self.login}{host}:{port}/0?{self.options}"

    def __str__(self) -> str:
        """Return the URL without the password, for people."""
        return f"{self.scheme}+cluster://" + ",".join(f"{host}:{port}" for host, port in self.places)


def is_cluster_url(url: str) -> bool:
    return url.partition(":")[0] in ("redis+cluster", "rediss+cluster")


@dataclass(frozen=True, slots=True)
class SlotRange:
    """The slots from `first` to `last`. `owner`: host and port of their primary, `node`: its id; `replicas`: host and
    port of its replicas.
    """

    first: int
    last: int
    owner: Place
    replicas: tuple[Place, ...]
    node: str = ""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster as one node sees it. `epoch` grows with each promotion and each move of slots. `is_ok`: whether the
    node is with a majority of the primaries.
    """

    epoch: int
    slots: tuple[SlotRange, ...]
    is_ok: bool = True

    @property
    def rank(self) -> tuple[bool, int]:
        """Return how far it is to be believed: a node that is cut off from the others knows no newer state."""
        return self.is_ok, self.epoch

    def owner_of(self, slot: int) -> Place | None:
        return next((one.owner for one in self.slots if one.first <= slot <= one.last), None)

    @property
    def places(self) -> set[Place]:
        return {place for one in self.slots for place in (one.owner, *one.replicas)}


async def newest_view(nodes: ClusterNodes, places: Collection[Place]) -> ClusterView:
    """Return the newest view that a majority of these nodes has, or those that answer within a second. Raises
    PrimaryNotFound.
    """
    views, faults = await of_majority([view_of(nodes, place) for place in places])
    if not views:
        raise _not_found(nodes, faults)
    return max(views, key=lambda view: view.rank)


async def view_of(nodes: ClusterNodes, place: Place) -> ClusterView:
    """Return the cluster as this node sees it. Raises RedisError, OSError or TimeoutError."""
    async with asyncio.timeout(ANSWER):
        connection = await StoreConnection.open(ServerAddress.parse(nodes.url_of(place)))
        try:
            ranges = await connection.request("CLUSTER", "SLOTS")
            info = str(await connection.request("CLUSTER", "INFO"))
        finally:
            connection.close()
    epoch = _EPOCH.search(info)
    slots = tuple(_slot_range(one, place[0]) for one in ranges)
    return ClusterView(int(epoch[1]) if epoch else 0, slots, is_ok="cluster_state:ok" in info)


def _slot_range(row: Sequence[Reply], asked: str) -> SlotRange:
    """Read a row of CLUSTER SLOTS."""
    first, last, *servers = row
    owner, *replicas = ((host_of(host, asked), int(port)) for host, port, *_ in servers)
    return SlotRange(first, last, owner, tuple(replicas), servers[0][2])


def host_of(named: str | None, asked: str) -> str:
    """Return the host of a node that another one has named: if it has named none, its own, which was asked."""
    return asked if named in (None, "", "?") else str(named)


def _not_found(nodes: ClusterNodes, faults: Sequence[Exception]) -> PrimaryNotFound:
    """Return why no node has the places of the slots: the first reason that waiting does not mend, else the first."""
    for fault in faults:
        if "cluster support disabled" in str(fault):
            return PrimaryNotFound(
                "CLUSTER_DISABLED",
                f"the server at {nodes} is no node of a cluster. Begin ADA_REDIS_URL with {nodes.scheme}://",
                is_wrong_name=True,
            )
        if isinstance(fault, AuthenticationError | ResponseError):
            return PrimaryNotFound("CLUSTER_REFUSES", f"a node of {nodes} refuses: {fault}", is_wrong_name=True)
    reason = (str(faults[0]) or type(faults[0]).__name__) if faults else "none is known"
    return PrimaryNotFound("CLUSTER_UNREACHABLE", f"no node of {nodes} answers: {reason}")


log = logging.getLogger(__name__)

WITHOUT_SHARD = tuple(key.pattern for key in KEYS.values() if "{s}" not in key.pattern)
"""Keys of the installation. In a cluster each has a slot of its own; their homes follow those of the shards."""

# Seconds from one reading of the map to the next: many slots may move in a second, and every reading asks all nodes.
_SPACING = 0.1


class ShardMap:
    """One per store. A home is a number: that of a shard, or one behind them for each key `WITHOUT_SHARD`."""

    def __init__(self, url: str, shards: int) -> None:
        self.cluster = ClusterNodes.parse(url) if is_cluster_url(url) else None
        self.shards = shards
        self.first_call: Callable[[StoreConnection], Awaitable[None]] | None = None
        self._known: dict[Place, Topology] = {}
        self._view: ClusterView | None = None
        first = self._at(self.cluster.places[0]) if self.cluster else Topology(url)
        self._slots = [key_slot(tag.encode()) for tag in (*map(str, range(shards)), *WITHOUT_SHARD)]
        self._homes = [first] * len(self._slots)
        self._listeners: list[Callable[[], None]] = []
        self._changed: asyncio.Future[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._next_reading = 0.0  # by time.monotonic

    def __str__(self) -> str:
        """Return the URL without the password, for people."""
        return str(self.cluster or self._homes[0])

    def of(self, home: int) -> Topology:
        """Return the primary of a home."""
        return self._homes[home]

    def slot_of(self, home: int) -> int:
        """Return the slot of a home's keys in a cluster."""
        return self._slots[home]

    @property
    def homes(self) -> int:
        return len(self._homes)

    def primaries(self) -> dict[Topology, list[int]]:
        """Return the homes of each primary that has one."""
        found: dict[Topology, list[int]] = {}
        for home, primary in enumerate(self._homes):
            found.setdefault(primary, []).append(home)
        return found

    def primary_ids(self) -> dict[Place, str]:
        """Return the id of each primary of a cluster, as the map was read last."""
        return {one.owner: one.node for one in self._view.slots} if self._view else {}

    def home_of(self, key: str) -> int:
        """Return the home of a key `WITHOUT_SHARD`; 0 for what is no key."""
        return self.shards + WITHOUT_SHARD.index(key) if key in WITHOUT_SHARD else 0

    def call_first(self, first_call: Callable[[StoreConnection], Awaitable[None]]) -> None:
        """Have this awaited on every new connection to a primary before it is used."""
        self.first_call = first_call
        for primary in {*self._homes, *self._known.values()}:
            primary.first_call = first_call

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of the map. It must not block."""
        self._listeners.append(listener)

    async def next_change(self) -> None:
        """Wait until the map changes."""
        self._changed = self._changed or asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    @property
    def known_places(self) -> set[Place]:
        """Return the nodes that the URL names, and those that the last view names."""
        return {*(self.cluster.places if self.cluster else ()), *(self._view.places if self._view else ())}

    async def read(self) -> None:
        """Read the map. Raises PrimaryNotFound."""
        if self.cluster:
            self._take(await newest_view(self.cluster, self.known_places))

    async def refresh(self) -> None:
        """Read the map, together with all that need it now. Without an answer it stays as it is."""
        if self.cluster:
            await asyncio.wait([self._begin_reading()])

    def _begin_reading(self) -> "asyncio.Task[None]":
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_or_keep(), name="shard map")
        return self._reading

    async def _read_or_keep(self) -> None:
        await asyncio.sleep(self._next_reading - time.monotonic())
        self._next_reading = time.monotonic() + _SPACING
        try:
            await self.read()
        except PrimaryNotFound as fault:
            log.debug("the map of the shards stays as it is: %s", fault)

    def follow(self, primary: Topology, home: int, moved: str) -> bool:
        """Follow the MOVED with which a primary has refused a call of a home. Return whether another primary has it.

        Only the node that the map names is believed, and only about the slot of this home: it has given the slot away.
        Any other one may be behind. The map is read as well: it may differ in more.
        """
        slot, _, place = moved.partition(" ")[2].partition(" ")
        if not self.cluster or slot != str(self._slots[home]):
            return False
        if self._homes[home] is primary:
            host, _, port = place.rpartition(":")
            owner = self._at((host_of(host, primary.address.host), int(port)))
            places = zip(self._slots, self._homes, strict=True)
            self._set([owner if known == self._slots[home] else old for known, old in places])
            self._begin_reading()
        return self._homes[home] is not primary

    async def pause(self, primary: Topology, seconds: float) -> None:
        """Wait until the next attempt to reach this primary; less long if it turns out to be another server."""
        await self.refresh()
        if primary in self._homes:
            await primary.pause(seconds)

    def _take(self, view: ClusterView) -> None:
        """Follow a view; an older one than before is ignored. A slot that has no owner keeps the one before."""
        if self._view and view.rank < self._view.rank:
            return
        owners = [view.owner_of(slot) for slot in self._slots]
        self._set([self._at(one) if one else old for one, old in zip(owners, self._homes, strict=True)])
        self._view = view

    def _set(self, homes: list[Topology]) -> None:
        if homes == self._homes:
            return
        self._homes = homes
        log.log(logging.INFO if self._view else logging.DEBUG, "shards: %s", self._text())
        if self._changed and not self._changed.done():
            self._changed.set_result(None)
        self._changed = None
        for listener in self._listeners:
            listener()

    def _text(self) -> str:
        """Return which shards each primary has, for the log."""
        shards = {at.place: [home for home in homes if home < self.shards] for at, homes in self.primaries().items()}
        return "; ".join(f"{place} has {', '.join(map(str, shards[place])) or 'none'}" for place in sorted(shards))

    def _at(self, place: Place) -> Topology:
        if place not in self._known:
            assert self.cluster
            self._known[place] = Topology(self.cluster.url_of(place), must_be_primary=True)
            if self.first_call:
                self._known[place].first_call = self.first_call
        return self._known[place]

    async def close(self) -> None:
        """End the watching; connections are closed by the code that opened them."""
        if self._reading:
            await asyncio.wait([self._reading])
        for primary in self.primaries():
            await primary.close()


_TOLERANCE = 0.1
"""Part of a primary's fair share: for less difference nothing is moved, and no move makes less of a difference."""


@dataclass(frozen=True, slots=True)
class Move:
    """A shard goes from one primary to another one; both by name."""

    shard: int
    source: str
    target: str


def balancing_moves(loads: Mapping[int, float], owners: Mapping[int, str], primaries: Collection[str]) -> list[Move]:
    """Return moves in order, each from the most loaded primary to the least loaded one. `loads`: of the shards;
    `owners`: their primaries; `primaries`: also those without a shard.
    """
    places = dict(owners)
    totals = {one: sum(loads[shard] for shard, at in owners.items() if at == one) for one in sorted(primaries)}
    least_gap = _TOLERANCE * sum(totals.values()) / len(totals)
    moves: list[Move] = []
    while True:
        source, target = max(totals, key=totals.__getitem__), min(totals, key=totals.__getitem__)
        gap = totals[source] - totals[target]
        useful = [
            shard
            for shard, at in places.items()
            if at == source and loads[shard] and min(loads[shard], gap - loads[shard]) >= least_gap / 2
        ]
        if gap <= least_gap or not useful:
            return moves
        shard = min(useful, key=lambda one: abs(gap / 2 - loads[one]))
        totals[source] -= loads[shard]
        totals[target] += loads[shard]
        places[shard] = target
        moves.append(Move(shard, source, target))
