"""A real primary with two replicas, watched by three Sentinels: servers that can be killed, frozen, cut off and started
again.

Sentinels, replicas and clients reach each server over a link of its own, which `cut_off` blocks silently. The direct
port stays open: a test that uses it is on the server's side of the partition.
"""

import asyncio
import secrets
import threading
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError, ResponseError

from cli.processes.embedded_valkey import free_port
from core.redis.cancel_and_wait import cancel_and_wait
from tests.support.replica_set.node import Node, Program
from tests.support.waiting import await_sync
from tests.system.crash.cuttable_link import CuttableLink

NAME = "ada"
SOON, LATE = 700, 60_000
"""Milliseconds of silence after which a server is lost, since a test waits for a promotion and since a repair: when a
busy machine stands still for a second, no replica is promoted in the middle of a repair. That is a second failure.
"""
PROMOTION, USUAL_PROMOTION = 60.0, 150.0
"""Seconds within which the Sentinels promote a replica also on a loaded machine: quick ones, and usual ones. When each
has voted for itself, usual ones vote again after twice failover-timeout, and that may happen twice.
"""

_QUICK = ("PUBLISH-PERIOD", 100, "INFO-PERIOD", 200, "PING-PERIOD", 400, "ASK-PERIOD", 100, "ELECTION-TIMEOUT", 1000)
"""Periods of a Sentinel in ms, so that a test does not wait for the usual ones of up to 10 s.

Once the primary is down it reads the INFO of its replicas every second, and promotes the one that has most of those
whose INFO is at most five periods of PING old: with a period below 200 ms, any of them or none.
"""
_SENTINEL = """port {port}
bind 127.0.0.1
dir {directory}
sentinel monitor {name} 127.0.0.1 {primary} 2
sentinel auth-user {name} sentinel
sentinel auth-pass {name} {password}
sentinel down-after-milliseconds {name} {patience}
"""
_USUAL_SENTINEL = """sentinel failover-timeout {name} 20000
"""
"""As docs/high-availability.md has it. With the default of three minutes a split vote is repeated after six."""
_DELAYS = {
    "-failover-abort-not-elected": "the vote was split",
    "+tilt": "a Sentinel stood still for two seconds, and promotes nothing for thirty",
}
_QUICK_SENTINEL = """sentinel failover-timeout {name} 1000
sentinel parallel-syncs {name} 2
"""
_DOWN_AFTER = 2000


def answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except RedisError:
        return False


class ReplicaSet:
    """`url`: what ADA_REDIS_URL gets. Every method returns after its effect.

    `program`: the server, by default the embedded Valkey. `is_usual`: the Sentinels keep their default periods, take a
    server for lost after 2 s, and this at any time, and vote again after 40 s.
    """

    def __init__(self, directory: Path, program: Path | None = None, *, is_usual: bool = False) -> None:
        self.is_usual = is_usual
        self._program = program
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="links", daemon=True).start()
        self._password = secrets.token_urlsafe(12)
        self._cut_off: list[Node] = []
        self.nodes: list[Node] = []
        for number in range(3):
            link, port = CuttableLink(free := free_port()), free
            self._do(link.start())
            primary = self.nodes[0].announced if self.nodes else 0
            self.nodes.append(Node(directory / f"server-{number}", self._password, link, port, primary, program))
        self.sentinels = [self._sentinel(directory / f"sentinel-{number}") for number in range(3)]
        places = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        self.url = f"redis+sentinel://:{self._password}@{places}/{NAME}/0"

    def _sentinel(self, directory: Path) -> Program:
        port = free_port()
        patience = _DOWN_AFTER if self.is_usual else LATE
        facts = {"port": port, "directory": directory, "name": NAME, "patience": patience}
        config = (_SENTINEL + (_USUAL_SENTINEL if self.is_usual else _QUICK_SENTINEL)).format(
            primary=self.nodes[0].announced, password=self._password, **facts
        )
        return Program(directory, config, port, "--sentinel", program=self._program)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        await_sync(lambda: sum(node.follows for node in self.nodes) == 2, "two replicas")
        for sentinel in self.sentinels:
            self._start_sentinel(sentinel)
        await_sync(lambda: all(self._sees_all(one) for one in self.sentinels), "three Sentinels")

    def _start_sentinel(self, sentinel: Program) -> None:
        sentinel.start()
        with Redis(port=sentinel.port, driver_info=None) as client:
            await_sync(lambda: answers(client), "a Sentinel")
            if not self.is_usual:
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

    @property
    def delays(self) -> Counter[str]:
        """What delayed promotions so far, as the Sentinels have logged it."""
        logs = "".join(sentinel.log.read_text(errors="replace") for sentinel in self.sentinels)
        return Counter({said: logs.count(mark) for mark, said in _DELAYS.items()})

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
        """Have the Sentinels look for a lost primary. Returns the new one as soon as it is one."""

        def is_promoted() -> bool:
            with suppress(StopIteration):
                return self.primary is not old and self.primary.facts().get("role") == "master"
            return False

        self._be_patient(SOON)
        before = self.delays
        try:
            await_sync(is_promoted, "a promotion", USUAL_PROMOTION if self.is_usual else PROMOTION)
        except TimeoutError as late:
            raise TimeoutError(f"{late}; meanwhile: {dict(self.delays - before)}") from late
        return self.primary

    def await_command(self, old: Node) -> Node:
        """Have the Sentinels look for a lost primary. Returns the new one as soon as it has been told that it is one:
        no Sentinel names it yet, and the other replica follows the old one for up to a second.
        """
        for sentinel in self.sentinels:
            with Redis(port=sentinel.port, driver_info=None) as client:
                client.execute_command("SENTINEL", "DEBUG", "INFO-PERIOD", 1000)
        self._be_patient(SOON)
        others = [node for node in self.nodes if node is not old]

        def promoted() -> Node | None:
            return next((node for node in others if node.facts().get("role") == "master"), None)

        return await_sync(promoted, "a promotion", PROMOTION)  # type: ignore[return-value]

    def _be_patient(self, patience: int) -> None:
        for sentinel in () if self.is_usual else self.sentinels:
            with suppress(RedisError), Redis(port=sentinel.port, socket_timeout=1, driver_info=None) as client:
                client.execute_command("SENTINEL", "SET", NAME, "down-after-milliseconds", patience)

    def fail_over(self) -> Node:
        """Have a replica promoted although the primary works; returns it."""
        old = self.primary
        with Redis(port=self.sentinels[0].port, driver_info=None) as client:
            with suppress(ResponseError):  # one is in progress already
                client.execute_command("SENTINEL", "FAILOVER", NAME)
        return self.await_promotion(old)

    def hold_replication(self) -> None:
        """Freeze the replicas and close their links: what the primary writes from now on reaches none of them."""
        primary, replicas = self.primary, self.replicas
        for replica in replicas:
            replica.freeze()
        primary.client.client_kill_filter(_type="replica")

    def cut_off(self, node: Node) -> None:
        """Let nothing through any more, and close nothing."""
        self._cut_off.append(node)
        self._loop.call_soon_threadsafe(node.link.block_requests)
        self._loop.call_soon_threadsafe(node.link.block_replies)

    def reconnect(self, node: Node) -> None:
        """End `cut_off`; what was underway is lost."""
        self._cut_off.remove(node)
        self._loop.call_soon_threadsafe(node.link.cut)

    def repair(self) -> None:
        """Let everything run, and two replicas follow the primary and catch up."""
        self._be_patient(LATE)
        for node in self.nodes:
            node.resume()
            if node in self._cut_off:
                self.reconnect(node)
            if not node.is_up:
                node.start()
            node.show()
        for sentinel in self.sentinels:
            sentinel.resume()
            if not sentinel.is_up:
                self._start_sentinel(sentinel)
        await_sync(self._is_whole, "two replicas that have caught up with the primary", 2 * PROMOTION)

    def _is_whole(self) -> bool:
        with suppress(StopIteration, KeyError):
            primary = self.primary
            place = primary.announced, primary.facts()["master_repl_offset"]
            replicas = [node for node in self.nodes if node is not primary]
            return all(node.has_caught_up(*place) for node in replicas) and all(map(self._sees_all, self.sentinels))
        return False

    def empty(self) -> None:
        """Repair everything, and remove all keys."""
        self.repair()
        self.primary.client.flushall()


async def _end_all() -> None:
    """End what still forwards data."""
    await cancel_and_wait(*(asyncio.all_tasks() - {asyncio.current_task()}))
