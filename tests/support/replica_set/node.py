"""A server of a replica set, and any program of it: killed, frozen, started again."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from cli.processes.die_with_parent import die_with_parent
from cli.processes.embedded_valkey import server_program
from tests.system.crash.cuttable_link import CuttableLink

_SERVER = """port {port}
bind 127.0.0.1
dir {directory}
requirepass {password}
masterauth {password}
user sentinel on >{password} ~* &* +@all
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


class Program:
    """One server or Sentinel. It ends with the test process."""

    def __init__(self, directory: Path, config: str, port: int, *options: str, program: Path | None = None) -> None:
        directory.mkdir()
        self._program = program or server_program()
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
            words = die_with_parent([str(self._program), str(self._config), *self._options])
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

    def __init__(
        self, directory: Path, password: str, link: CuttableLink, port: int, primary: int, program: Path | None
    ) -> None:
        config = _SERVER.format(port=port, directory=directory, password=password, announced=link.port)
        config += f"replicaof 127.0.0.1 {primary}\n" if primary else ""
        super().__init__(directory, config, port, program=program)
        self.link = link
        self.announced = link.port
        self.url = f"redis://default:{password}@127.0.0.1:{port}/0"
        self.client = Redis.from_url(self.url, decode_responses=True, socket_timeout=5, driver_info=None)

    def hide(self) -> None:
        """Let no Sentinel reach it any more; clients and replicas do."""
        self.client.acl_setuser("sentinel", enabled=False)
        self.client.client_kill_filter(user="sentinel")

    def show(self) -> None:
        """End `hide`: connections that were opened meanwhile have not logged in."""
        with suppress(RedisError):
            user: Any = self.client.acl_getuser("sentinel")
            if "off" in user["flags"]:
                self.client.acl_setuser("sentinel", enabled=True)
                self.client.client_kill_filter(_type="normal")

    def facts(self) -> dict[str, Any]:
        """Return INFO replication; empty if the server does not answer."""
        try:
            return dict(self.client.info("replication"))
        except RedisError:
            return {}

    @property
    def follows(self) -> bool:
        """Return whether it is a replica with a link to its primary."""
        return _follows(self.facts())

    @property
    def offset(self) -> int:
        """Bytes that it has of its primary's writes; 0 if it is a primary or does not answer."""
        return int(self.facts().get("slave_repl_offset", 0))

    def has_caught_up(self, port: int, offset: int) -> bool:
        """Return whether it follows the primary at this port and has what that had at this offset."""
        facts = self.facts()
        return _follows(facts) and facts["master_port"] == port and facts["slave_repl_offset"] >= offset


def _follows(facts: Mapping[str, Any]) -> bool:
    return facts.get("role") == "slave" and facts.get("master_link_status") == "up"
