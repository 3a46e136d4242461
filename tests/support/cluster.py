"""A real cluster: three primaries and their replicas. Its nodes can be killed, frozen and started again."""

import itertools
import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from redis import Redis
from redis.crc import key_slot
from redis.exceptions import RedisError

from cli.processes.embedded_valkey import free_port
from tests.support.replica_set import answers
from tests.support.replica_set.node import Program
from tests.support.waiting import await_sync

_CONFIG = """port {port}
cluster-port {bus}
bind 127.0.0.1
dir {directory}
requirepass {password}
masterauth {password}
cluster-enabled yes
cluster-node-timeout 1500
cluster-replica-validity-factor 0
cluster-allow-replica-migration no
cluster-require-full-coverage no
appendonly yes
appendfsync no
save ""
maxmemory-policy noeviction
notify-keyspace-events Kgx
hash-max-listpack-value 1024
repl-diskless-sync-delay 0
repl-ping-replica-period 1
enable-debug-command local
"""
_SLOTS = 16384
_NOWHERE = "192.0.2.1"
"""An address that no machine has: nothing can be sent from it."""


class ClusterNode(Program):
    """A node of the cluster. `bus`: the port on which the nodes talk to each other."""

    def __init__(self, directory: Path, password: str, program: Path | None) -> None:
        port, self.bus = free_port(), free_port()
        config = _CONFIG.format(port=port, bus=self.bus, directory=directory, password=password)
        super().__init__(directory, config, port, program=program)
        self.url = f"redis://default:{password}@127.0.0.1:{port}/0"
        self.client = Redis.from_url(self.url, decode_responses=True, socket_timeout=5, driver_info=None)

    def command(self, *command: str | int) -> Any:
        """Return the reply to a command. Raises RedisError."""
        return self.client.execute_command(*command)  # type: ignore[no-untyped-call]

    def ask(self, *command: str | int) -> Any:
        """Do `command`; None if it fails or the node does not answer."""
        with suppress(RedisError):
            return self.command(*command)
        return None

    @property
    def is_primary(self) -> bool:
        return str((self.ask("ROLE") or [""])[0]) == "master"

    @property
    def id(self) -> str:
        return str(self.command("CLUSTER", "MYID"))

    @property
    def offset(self) -> int:
        """Bytes that it has of its primary's writes, or has written itself; 0 if it does not answer."""
        return self._replication("slave_repl_offset") or self._replication("master_repl_offset")

    @property
    def began_at(self) -> int:
        """Bytes that a replica had of its primary's writes when it was promoted."""
        return self._replication("second_repl_offset") - 1

    def _replication(self, field: str) -> int:
        with suppress(RedisError):
            return int(self.client.info("replication").get(field, 0))
        return 0

    @property
    def is_replicated(self) -> bool:
        """Return whether its replica has all of its writes."""
        role = self.ask("ROLE") or []
        return len(role) == 3 and any(int(replica[2]) == role[1] for replica in role[2])


class Cluster:
    """`url`: what ADA_REDIS_URL gets: it names one node. Every method returns after its effect.

    `replicas`: the first primary gets the first one, the second the next, and so on.

    `program`: the server, by default the embedded Valkey. Redis 7 moves slots only key by key.
    """

    def __init__(self, directory: Path, replicas: int = 1, program: Path | None = None) -> None:
        password = secrets.token_urlsafe(12)
        self._password = password
        self._moves_at_once = program is None
        self.nodes = [ClusterNode(directory / f"node-{number}", password, program) for number in range(3 + replicas)]
        self.url = f"redis+cluster://:{password}@127.0.0.1:{self.nodes[1].port}"

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            await_sync(lambda node=node: answers(node.client), "a node")  # type: ignore[misc]
        for number, node in enumerate(self.nodes[:3]):
            node.ask("CLUSTER", "ADDSLOTSRANGE", number * _SLOTS // 3, (number + 1) * _SLOTS // 3 - 1)
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        await_sync(self._have_met, "nodes that know each other")
        for replica, primary in zip(self.nodes[3:], itertools.cycle(self.nodes[:3]), strict=False):
            self._follow(replica, primary)
        self.await_whole()

    def _have_met(self) -> bool:
        """Return whether every node knows all others. A node gives up a handshake that takes longer than
        cluster-node-timeout, so those that do not know each other then are introduced again.
        """
        first, *others = self.nodes
        known = {node: self._known(node) for node in self.nodes}
        for node in others:
            if node.port not in known[first] or first.port not in known[node]:
                first.ask("CLUSTER", "MEET", "127.0.0.1", node.port, node.bus)
        return all(len(ports) == len(self.nodes) for ports in known.values())

    def _known(self, node: ClusterNode) -> set[int]:
        """Return the ports of the nodes that a node knows, after the handshake; its own among them."""
        lines = [line.split() for line in str(node.ask("CLUSTER", "NODES") or "").splitlines()]
        return {int(line[1].partition("@")[0].rpartition(":")[2]) for line in lines if "handshake" not in line[2]}

    def _follow(self, replica: ClusterNode, primary: ClusterNode) -> None:
        await_sync(lambda: replica.ask("CLUSTER", "REPLICATE", primary.id) is not None, "a replica")

    def await_whole(self) -> None:
        """Wait until every node sees the same cluster, whole."""
        await_sync(self._is_whole, "a whole cluster")

    def _is_whole(self) -> bool:
        views = [self._view(node) for node in self.nodes]
        return bool(views[0]) and views.count(views[0]) == len(views)

    def _view(self, node: ClusterNode) -> list[Any] | None:
        """Return (first slot, last slot, port of the primary, ports of the replicas); None if it is not whole."""
        if "cluster_state:ok" not in str(node.ask("CLUSTER", "INFO")):
            return None
        raw = node.ask("CLUSTER", "SLOTS") or []
        rows = sorted((row[0], row[1], row[2][1], sorted(one[1] for one in row[3:])) for row in raw)
        followed = sum(len(ports) for ports in {row[2]: row[3] for row in rows}.values())
        return rows if followed == len(self.nodes) - 3 else None

    def owner(self, shard: int) -> ClusterNode:
        """The primary of a shard, as a majority of the nodes that answer sees it."""
        return self.owner_of(str(shard))

    def owner_of(self, key: str) -> ClusterNode:
        """The primary of a key without a tag."""
        return self.owners([key])[0]

    def owners(self, keys: Sequence[str]) -> list[ClusterNode]:
        """The primaries of keys without a tag."""
        views = [node.ask("CLUSTER", "SLOTS") or [] for node in self.nodes]
        return [self._owner(key_slot(key.encode()), views) for key in keys]

    def _owner(self, slot: int, views: Sequence[Sequence[Any]]) -> ClusterNode:
        ports = [row[2][1] for view in views for row in view if row[0] <= slot <= row[1]]
        return next(node for node in self.nodes if node.port == max(ports, key=ports.count))

    def move(self, shard: int, to: ClusterNode) -> None:
        """Move the slot of a shard while calls run: at once, or key by key where the server cannot."""
        slot, owner = key_slot(str(shard).encode()), self.owner(shard)
        if self._moves_at_once:
            owner.command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", to.id)
        else:
            self.begin_key_by_key(shard, to)
            self.end_key_by_key(shard, to)
        await_sync(lambda: self.owner(shard) is to, "a slot that has moved")

    def move_all(self, targets: Mapping[int, ClusterNode]) -> None:
        """Move the slots of shards, those of each two nodes at once, one pair after another: two nodes that move slots
        to each other at the same time wait for each other until one gives up.
        """
        owners = dict(zip(targets, self.owners(list(map(str, targets))), strict=True))
        for pair in {(owners[shard], targets[shard]) for shard in targets}:
            self._move_between(*pair, [shard for shard in targets if (owners[shard], targets[shard]) == pair])

    def _move_between(self, source: ClusterNode, target: ClusterNode, shards: Sequence[int]) -> None:
        ranges = [slot for shard in shards for slot in [key_slot(str(shard).encode())] * 2]
        source.command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", *ranges, "NODE", target.id)
        keys = list(map(str, shards))
        await_sync(lambda: set(self.owners(keys)) == {target}, "slots that have moved")

    def begin_key_by_key(self, shard: int, to: ClusterNode) -> None:
        """Begin to move a slot as redis-cli does: key by key."""
        slot, owner = key_slot(str(shard).encode()), self.owner(shard)
        to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", owner.id)
        owner.command("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)

    def end_key_by_key(self, shard: int, to: ClusterNode) -> None:
        slot, owner = key_slot(str(shard).encode()), self.owner(shard)
        while keys := owner.command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            words = ("AUTH2", "default", self._password, "KEYS", *keys)
            owner.command("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, *words)
        for node in (to, owner, *self.nodes):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", to.id)

    def shell(self, commands: str) -> None:
        """Do what an operator types. Debian's redis-cli stands for valkey-cli."""
        environment = {**os.environ, "REDISCLI_AUTH": self._password}
        subprocess.run(commands.replace("valkey-cli", "redis-cli"), shell=True, check=True, env=environment, timeout=30)

    def replicas_of(self, primary: ClusterNode) -> list[ClusterNode]:
        """The nodes that follow a primary."""
        return [node for node in self.nodes if (node.ask("ROLE") or [""])[0:3:2] == ["slave", primary.port]]

    def hold_replication(self, primary: ClusterNode, replicas: Sequence[ClusterNode]) -> None:
        """Freeze its replicas and close their links: what it writes from now on reaches none of them."""
        for replica in replicas:
            replica.freeze()
        primary.command("CLIENT", "KILL", "TYPE", "replica")

    def cut_off(self, group: Sequence[ClusterNode]) -> None:
        """Let no packet of the cluster into or out of these nodes, and replicate nothing to a replica among the others.
        One that is cut off with its primary goes on following it. Clients reach all nodes. Redis 7 cannot do this.
        """
        for node in group:
            node.command("DEBUG", "DROP-CLUSTER-PACKET-FILTER", -2)
            node.command("CONFIG", "SET", "bind-source-addr", _NOWHERE)
        followed = [replica for node in group for replica in self.replicas_of(node) if replica not in group]
        for replica in followed:
            replica.command("CONFIG", "SET", "masterauth", "nobody's")
            replica.command("CLIENT", "KILL", "TYPE", "master")

    def reconnect(self) -> None:
        """End `cut_off`."""
        for node in self.nodes:
            node.command("DEBUG", "DROP-CLUSTER-PACKET-FILTER", -1)
            node.command("CONFIG", "SET", "bind-source-addr", "")
            node.command("CONFIG", "SET", "masterauth", self._password)
        self.await_whole()

    def await_promotion(self, replicas: Sequence[ClusterNode]) -> ClusterNode:
        """Return the first of these replicas that is a primary, as soon as it is one."""
        return await_sync(lambda: next((node for node in replicas if node.is_primary), None), "a promotion")  # type: ignore[return-value]

    def repair(self) -> None:
        """Let every node run; each replica follows its primary and has caught up."""
        for node in self.nodes:
            node.resume()
            if not node.is_up:
                node.start()
        self.await_whole()
        for primary in [node for node in self.nodes if node.is_primary]:
            written = primary.offset
            await_sync(lambda: self._have_caught_up(primary, written), "replicas")  # noqa: B023

    def _have_caught_up(self, primary: ClusterNode, written: int) -> bool:
        return all(replica.offset >= written for replica in self.replicas_of(primary))

    def empty(self) -> None:
        """Repair everything, and remove all keys."""
        self.repair()
        for node in self.nodes:
            node.ask("FLUSHALL")

    def close(self) -> None:
        for node in self.nodes:
            node.resume()
            node.kill()
            node.client.close()
