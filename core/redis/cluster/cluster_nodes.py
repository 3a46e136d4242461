"""The URL of a cluster (docs/cluster.md), and what its nodes say about the owners of the slots.

User, password and options are those of every node. Called by `core.redis.cluster.shard_map`.
"""

import asyncio
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from redis.exceptions import AuthenticationError, ResponseError

from core.redis.connection import Reply, ServerAddress, StoreConnection
from core.redis.sentinels import ANSWER, PrimaryNotFound, of_majority, server_places

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
