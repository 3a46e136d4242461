"""An external server that is down while processes of `up` restart: they wait for it, and nothing is given up. One that
loses its data: all that a start registers is registered again.
"""

import json
import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from cli.command import FAILURE, SUCCESS
from tests.cli.installation import Installation
from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.support.waiting import await_sync


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
            await_sync(partial(has_waited, installation, process), what=f"{process} to wait")
        own_server.start()
        await_sync(lambda: installation.log.read_text().count("can be reached again") == 2, what="both")
        await_sync(lambda: is_ready_again(installation, "serve") and is_ready_again(installation, "sms"), what="both")
        await_sync(lambda: installation.ada("doctor").returncode == 0, what="a good state")
        history = installation.result("send", "--to", "sms:+79990000001", "--text", "after", "--wait")
        assert history["verdict"] == "all_reached"
        log = installation.log.read_text()
        assert "stopped for good" not in log
        assert "Traceback" not in log
        assert waits(installation, "serve") == waits(installation, "sms") == 1, "it is logged once"
    finally:
        installation.end()


def is_ready_again(installation: Installation, process: str) -> bool:
    return installation.log.read_text().count(f'"part": "{process}", "line": "ready"') == 2


def waits(installation: Installation, process: str) -> int:
    lines = installation.log.read_text().splitlines()
    return sum(f'"part": "{process}"' in line and "Waiting for it." in line for line in lines)


def has_waited(installation: Installation, process: str) -> bool:
    return waits(installation, process) == 1


PROCESSES = ("serve", "telegram", "vk", "max", "sms", "email", "bot telegram", "bot sms", "scenarios", "jobs")
BEGUN_ANEW = "this process has begun anew"


def test_an_installation_whose_store_is_emptied_registers_again_what_its_start_has_registered(
    tmp_path: Path, own_server: Server
) -> None:
    installation = Installation(tmp_path)
    installation.environment |= {
        "ADA_REDIS_URL": own_server.url,
        "ADA_SCENARIOS": str(ROOT / "examples" / "school-bot"),
        "ADA_JOBS": str(ROOT / "examples" / "price_watcher" / "watching.py"),
    }
    installation.up()
    try:
        own_server.empty()
        await_sync(lambda: all(has_begun_anew(installation, one) for one in PROCESSES), what="all processes")
        await_sync(lambda: sends(installation), what="a message with the first key")
        doctor = installation.ada("doctor")
        assert doctor.returncode == FAILURE
        assert "the data of the store are gone" in doctor.stdout
        assert "./ada doctor --accept-loss" in doctor.stdout
        assert installation.ada("doctor", "--accept-loss").returncode == SUCCESS
        assert "stopped for good" not in installation.log.read_text()
    finally:
        installation.end()


def has_begun_anew(installation: Installation, process: str) -> bool:
    lines = installation.log.read_text().splitlines()
    return any(f'"part": "{process}"' in line and BEGUN_ANEW in line for line in lines)


def sends(installation: Installation) -> bool:
    done = installation.ada("send", "--to", "sms:+79990000001,max:300001", "--text", "after", "--wait", "--json")
    return done.returncode == SUCCESS and json.loads(done.stdout.splitlines()[-1])["verdict"] == "all_reached"
