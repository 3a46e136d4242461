"""`scenarios test` runs the actions of installed packages and starts the jobs of ADA_JOBS (C-110)."""

import os
import subprocess
import sys
from pathlib import Path

from tests.scenarios.bot_folder import BotFolder
from tests.support.paths import ROOT

PACKAGE = """
from contextlib import asynccontextmanager
from scenarios.engine import completed
from scenarios.plugins import Plugin
from scenarios.schema import ActionType

@asynccontextmanager
async def counter(services):
    yield [0]

async def count(context, attributes):
    context.services.plugins["counter"][0] += 1
    return completed({"counted": context.services.plugins["counter"][0]})

async def lost(context, attributes):
    raise AssertionError("it is off")

PLUGIN = Plugin("counter", counter)
COUNT = ActionType("count", "Counts.", returns={"counted": "how often"}, execute=count, needs=("counter",))
LOST = ActionType("lost", "Needs what is not there.", execute=lost, needs=("nothing",))
"""
ENTRY_POINTS = """
[ada.plugins]
counter = counting:PLUGIN
[ada.actions]
count = counting:COUNT
lost = counting:LOST
"""
JOB = """
from datetime import timedelta
from jobs import Iteration, Job, Schedule

class Hunt(Job):
    name = "hunt"
    schedule = Schedule(timedelta(hours=1))

    async def run(self, iteration: Iteration) -> None:
        raise AssertionError("a test of a bot runs no iteration")
"""
SCENARIOS = """
start:
  actions:
    - {type: count, on_failure: [{type: send, text: "{error}"}]}
    - {type: send, text: "{counted}", chain: completed}
lost: {actions: [{type: lost, on_failure: [{type: send, text: "{error}"}]}]}
hunt:
  actions:
    - {type: job, operation: start, kind: hunt, on_failure: [{type: send, text: "{error}"}]}
    - {type: send, text: "{job_state}", chain: completed}
stop:
  actions:
    - {type: job, operation: stop, kind: hunt}
    - {type: send, text: "{job_state}", chain: completed}
"""
TESTS = """
a package runs:
  steps: [{user: /start, bot: "1"}, {user: /start, bot: "2"}]
it begins anew in each test, and fails where it is off:
  steps: [{user: /start, bot: "1"}, {user: /lost, bot: {contains: "it needs nothing, which is not there"}}]
a test says what it returns:
  returns: {count: {counted: 7}}
  steps: [{user: /start, bot: "7"}]
a job is started once, and stopped:
  steps:
    - {user: /hunt, bot: {starts_with: "hunt: работает"}}
    - {user: /hunt, bot: {contains: "Повторов: 0"}}
    - {user: /stop, bot: {matches: "hunt: останов(лено|ливается)"}}
"""


def test_packages_run_and_jobs_are_started(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(PACKAGE)
    (tmp_path / "hunt.py").write_text(JOB)
    information = tmp_path / "counting-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    bot = BotFolder(tmp_path / "bot").write("scenarios/s.yaml", SCENARIOS).write("tests/t.yaml", TESTS)
    bot.write("triggers.yaml", "text: {exact: {/start: s.start, /lost: s.lost, /hunt: s.hunt, /stop: s.stop}}")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "ADA_JOBS": str(tmp_path / "hunt.py")}
    command = [sys.executable, "-m", "cli", "scenarios", "test", str(bot.folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout == "4 tests passed, 0 failed\n", done.stdout + done.stderr
    assert "sample" not in done.stderr
