"""An external server that is down while processes of `up` restart: they wait for it, and nothing is given up."""

import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.cli.installation import Installation
from tests.support.servers import Server, await_sync

pytestmark = pytest.mark.timeout(300)


@pytest.mark.row("D-19")
def test_processes_that_restart_while_the_server_is_down_wait_for_it(
    tmp_path: Path, own_server: Server, sms_account: Mapping[str, str]
) -> None:
    installation = Installation(tmp_path)
    installation.environment |= {"ADA_REDIS_URL": own_server.url, **sms_account}
    installation.up()
    try:
        own_server.kill()
        for process in ("serve", "courier sms"):
            os.kill(installation.child(process), signal.SIGKILL)
        for process in ("serve", "sms"):
            await_sync(partial(has_waited, installation, process), within=60, what=f"{process} to wait")
        own_server.start()
        await_sync(lambda: installation.log.read_text().count("can be reached again") == 2, within=60, what="both")
        await_sync(lambda: installation.ada("doctor").returncode == 0, within=60, what="a good state")
        history = installation.result("send", "--to", "sms:+79990000001", "--text", "after", "--wait")
        assert history["verdict"] == "all_reached"
        log = installation.log.read_text()
        assert "stopped for good" not in log
        assert "Traceback" not in log
        assert waits(installation, "serve") == waits(installation, "sms") == 1, "it is logged once"
    finally:
        installation.end()


def waits(installation: Installation, process: str) -> int:
    lines = installation.log.read_text().splitlines()
    return sum(f'"part": "{process}"' in line and "Waiting for it." in line for line in lines)


def has_waited(installation: Installation, process: str) -> bool:
    return waits(installation, process) == 1
