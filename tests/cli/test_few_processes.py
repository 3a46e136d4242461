"""`ADA_PROCESSES=few`: all couriers in one process and all bots in another, as real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json

from cli.processes.supervisor import PART
from core.model.parts import UpPart
from tests.cli.installation import Installation, have_ended, new_installation
from tests.support.waiting import await_sync

PEOPLE = ("--to", "7=telegram:100001,vk:200001,sms:+79990000001,email:a@school.example")


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    for installation in new_installation(tmp_path):
        installation.environment["ADA_PROCESSES"] = "few"
        yield installation


def test_all_couriers_share_a_process_which_is_started_again_after_a_kill(installation: Installation) -> None:
    installation.up()
    pids = installation.children()
    shared = [command for command in pids.values() if "shared_process" in command]
    assert sorted(command.split("shared_process ")[1] for command in shared) == [
        "bot vk bot max bot sms bot telegram",
        "courier telegram courier vk courier max courier sms courier telegram-bot courier email courier web-push",
    ]
    os.kill(installation.child("shared_process courier"), signal.SIGKILL)
    installation.terminate("shared_process bot")
    history = installation.result("send", *PEOPLE, "--text", "one process", "--wait")
    assert history["verdict"] == "all_reached"
    noted = installation.ada("processes").stdout
    assert [
        name for name in ("telegram", "vk", "max", "sms", "telegram-bot", "email") if f"courier {name} " not in noted
    ] == []
    pids = installation.children()
    assert installation.end(signal.SIGINT) == 0
    await_sync(lambda: have_ended(pids), what="the end of all processes")
    assert "killed" not in installation.log.read_text(), "each thread ends when it is asked to"


def test_a_verb_that_fails_is_started_again_and_one_that_cannot_work_ends_alone(tmp_path: Path) -> None:
    installation = Installation(tmp_path)
    installation.environment["ADA_REDIS_URL"] = "redis://127.0.0.1:1"
    words = [sys.executable, "-P", "-m", "cli.shared_process", "courier nosuch", "processes", "sandbox"]
    with installation.log.open("w") as log:
        process = subprocess.Popen(words, cwd=tmp_path, env=installation.environment, stdout=log, stderr=log)
    again = "processes ended (exit code 1), restarts in 1 s"  # after the pause of 0.5 s before
    await_sync(lambda: again in installation.log.read_text(), what="the second end of a verb that fails")

    def states() -> dict[str, str]:
        lines = [line for line in installation.log.read_text().splitlines() if line.startswith(PART)]
        parts = [json.decode(line.removeprefix(PART), type=UpPart) for line in lines]
        return {part.name: part.state for part in parts if part.name != "processes"}

    await_sync(lambda: states() == {"courier nosuch": "stopped", "sandbox": "running"}, what="the other two verbs")
    assert "courier nosuch stopped for good (exit code 2)" in installation.log.read_text()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
