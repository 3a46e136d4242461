"""A real primary with two replicas, watched by three Sentinels: servers that can be killed, frozen, cut off and started
again.

Sentinels, replicas and clients reach each server over a link of its own, which `cut_off` blocks silently. The direct
port stays open: a test that uses it is on the server's side of the partition.
"""

import asyncio
import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from cli.processes.die_with_parent import die_with_parent
from cli.processes.embedded_valkey import free_port, server_program
from core.redis.cancel_and_wait import cancel_and_wait
from tests.support.servers import await_sync
from tests.system.crash.cuttable_link import CuttableLink

NAME = "ada"
PROMOTION = 60.0
"""Seconds within which the Sentinels promote a replica also on a loaded machine."""

_SERVER = """port {port}
bind 127.0.0.1
dir {directory}
requirepass {password}
primaryauth {password}
replica-announce-ip 127.0.0.1
replica-announce-port {announced}
appendonly yes
appendfsync no
save ""
maxmemory-policy noeviction
notify-keyspace-events Kgx
hash-max-listpack-value 1024
repl-diskless-sync-delay 0
repl-ping-replica-period 1
repl-timeout 60
"""
_QUICK = ("PUBLISH-PERIOD", 100, "INFO-PERIOD", 200, "PING-PERIOD", 100, "ASK-PERIOD", 100, "ELECTION-TIMEOUT", 1000)
"""Periods of a Sentinel in ms, so that a test does not wait for the usual ones of up to 10 s."""
_SENTINEL = """port {port}
bind 127.0.0.1
dir {directory}
sentinel monitor {name} 127.0.0.1 {primary} 2
sentinel auth-pass {name} {password}
sentinel down-after-milliseconds {name} 700
sentinel failover-timeout {name} 1000
sentinel parallel-syncs {name} 2
"""


def answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except RedisError:
        return False


class Program:
    """One server or Sentinel. It ends with the test process."""

    def __init__(self, directory: Path, config: str, port: int, *options: str) -> None:
        directory.mkdir()
        self.port = port
        self.log = directory / "log"
        self._config = directory / "server.conf"
        self._config.write_text(config)
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self.log.open("ab") as log:
            words = die_with_parent([str(server_program()), str(self._config), *self._options])
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self._process:
            self._process.wait()
            assert self._process.stdin
            self._process.stdin.close()
        self._process = None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)


class Node(Program):
    """A server of the set. `announced`: the port of its link, under which the others know it."""

    def __init__(self, directory: Path, password: str, link: CuttableLink, port: int, primary: int) -> None:
        config = _SERVER.format(port=port, directory=directory, password=password, announced=link.port)
        config += f"replicaof 127.0.0.1 {primary}\n" if primary else ""
        super().__init__(directory, config, port)
        self.link = link
        self.announced = link.port
        self.url = f"redis://default:{password}@127.0.0.1:{port}/0"
        self.client = Redis.from_url(self.url, decode_responses=True, socket_timeout=5, driver_info=None)

    def facts(self) -> dict[str, Any]:
        """Return INFO replication; empty if the server does not answer."""
        try:
            return dict(self.client.info("replication"))
        except RedisError:
            return {}

    @property
    def follows(self) -> bool:
        """Whether it is a replica with a link to its primary."""
        facts = self.facts()
        return facts.get("role") == "slave" and facts.get("master_link_status") == "up"


class ReplicaSet:
    """`url`: what ADA_REDIS_URL gets. Every method returns after its effect."""

    def __init__(self, directory: Path) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="links", daemon=True).start()
        self._password = secrets.token_urlsafe(12)
        self.nodes: list[Node] = []
        for number in range(3):
            link, port = CuttableLink(free := free_port()), free
            self._do(link.start())
            primary = self.nodes[0].announced if self.nodes else 0
            self.nodes.append(Node(directory / f"server-{number}", self._password, link, port, primary))
        self.sentinels = [self._sentinel(directory / f"sentinel-{number}") for number in range(3)]
        places = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        self.url = f"redis+sentinel://:{self._password}@{places}/{NAME}/0"

    def _sentinel(self, directory: Path) -> Program:
        port = free_port()
        config = _SENTINEL.format(
            port=port, directory=directory, name=NAME, primary=self.nodes[0].announced, password=self._password
        )
        return Program(directory, config, port, "--sentinel")

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        await_sync(lambda: sum(node.follows for node in self.nodes) == 2, 20, "two replicas")
        for sentinel in self.sentinels:
            self._start_sentinel(sentinel)
        await_sync(lambda: all(self._sees_all(one) for one in self.sentinels), 20, "three Sentinels")

    def _start_sentinel(self, sentinel: Program) -> None:
        sentinel.start()
        with Redis(port=sentinel.port, driver_info=None) as client:
            await_sync(lambda: answers(client), 10, "a Sentinel")
            client.execute_command("SENTINEL", "DEBUG", *_QUICK)

    def _sees_all(self, sentinel: Program) -> bool:
        try:
            with Redis(port=sentinel.port, decode_responses=True, driver_info=None) as client:
                facts = client.sentinel_master(NAME)
        except (RedisError, KeyError):
            return False
        return int(facts["num-slaves"]) == 2 and int(facts["num-other-sentinels"]) == 2

    def close(self) -> None:
        for program in (*self.sentinels, *self.nodes):
            program.resume()
            program.kill()
        for node in self.nodes:
            node.client.close()
            self._do(node.link.stop())
        self._do(_end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)

    @property
    def primary(self) -> Node:
        """The server that a majority of the Sentinels names."""
        named = [self._named(sentinel) for sentinel in self.sentinels]
        return next(node for node in self.nodes if named.count(node.announced) >= 2)

    def _named(self, sentinel: Program) -> int:
        """Return the port of the primary as one Sentinel names it; 0 if it does not answer."""
        try:
            with Redis(port=sentinel.port, decode_responses=True, socket_timeout=1, driver_info=None) as client:
                return int(client.sentinel_get_master_addr_by_name(NAME)[1])
        except RedisError:
            return 0

    @property
    def replicas(self) -> list[Node]:
        primary = self.primary
        return [node for node in self.nodes if node is not primary]

    def await_promotion(self, old: Node) -> Node:
        """Returns the new primary as soon as it is one."""

        def is_promoted() -> bool:
            with suppress(StopIteration):
                return self.primary is not old and self.primary.facts().get("role") == "master"
            return False

        await_sync(is_promoted, PROMOTION, "a promotion")
        return self.primary

    def hold_replication(self) -> None:
        """Freeze the replicas and close their links: what the primary writes from now on reaches none of them."""
        primary, replicas = self.primary, self.replicas
        for replica in replicas:
            replica.freeze()
        primary.client.client_kill_filter(_type="replica")

    def cut_off(self, node: Node) -> None:
        """Let nothing through any more, and close nothing."""
        self._loop.call_soon_threadsafe(node.link.block_requests)
        self._loop.call_soon_threadsafe(node.link.block_replies)

    def reconnect(self, node: Node) -> None:
        """End `cut_off`; what was underway is lost."""
        self._loop.call_soon_threadsafe(node.link.cut)

    def repair(self) -> None:
        """Let everything run, and two replicas follow the primary."""
        for node in self.nodes:
            node.resume()
            self.reconnect(node)
            if not node.is_up:
                node.start()
        for sentinel in self.sentinels:
            sentinel.resume()
            if not sentinel.is_up:
                self._start_sentinel(sentinel)
        await_sync(self._is_whole, 2 * PROMOTION, "two replicas that follow the primary")

    def _is_whole(self) -> bool:
        with suppress(StopIteration):
            return all(node.follows for node in self.replicas) and all(map(self._sees_all, self.sentinels))
        return False

    def empty(self) -> None:
        """Repair everything, and remove all keys."""
        self.repair()
        self.primary.client.flushall()


async def _end_all() -> None:
    """End what still forwards data."""
    await cancel_and_wait(*(asyncio.all_tasks() - {asyncio.current_task()}))
