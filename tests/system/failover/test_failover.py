"""The short form of `./ada prove failover`: the worst blow, a channel that recognises repeats and a channel that does
not."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox.sandbox import Sandbox
from tests.support.replica_set import ReplicaSet
from tests.support.serving import serving
from tests.system.failover.failover import Failover, Plan

SHORT = Plan(seed=1, rate=6.0, channels=("telegram", "sms"), blows=1)


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with serving(Sandbox(tmp_path / "sandbox")) as opened:
        yield opened


@pytest.mark.row("S-05", "S-06", "S-10")
async def test_lost_primaries_lose_and_double_nothing_that_was_accepted(
    replica_set: ReplicaSet, sandbox: Sandbox, tmp_path: Path
) -> None:
    outcome = await Failover(replica_set, sandbox, tmp_path, SHORT, print).run()
    assert outcome.findings == [], str(outcome)
    assert len(outcome.gaps) == 1
    assert outcome.statuses["sms sent"] > 10
