"""The short forms of `./ada prove failover` and `./ada prove cluster`: a channel that recognises repeats and one that
does not; the worst blow, at a cluster one more.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.sandbox import Sandbox
from tests.support.cluster import Cluster
from tests.support.replica_set import ReplicaSet
from tests.support.serving import serving
from tests.system.failover.failover import Failover, Plan
from tests.system.failover.servers_under_blows import under_blows

SHORT = Plan(seed=1, rate=6.0, channels=("telegram", "sms"), blows=1)


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with serving(Sandbox(tmp_path / "sandbox")) as opened:
        yield opened


async def test_lost_primaries_lose_and_double_nothing_that_was_accepted(
    replica_set: ReplicaSet, sandbox: Sandbox, tmp_path: Path
) -> None:
    outcome = await Failover(under_blows(replica_set), sandbox, tmp_path, SHORT, print).run()
    assert outcome.findings == [], str(outcome)
    assert len(outcome.gaps) == 1
    assert outcome.statuses["sms sent"] > 10


async def test_lost_primaries_of_a_cluster_lose_double_and_reorder_nothing_that_was_accepted(
    cluster: Cluster, sandbox: Sandbox, tmp_path: Path
) -> None:
    plan = replace(SHORT, rate=12.0, blows=2)
    outcome = await Failover(under_blows(cluster), sandbox, tmp_path, plan, print).run()
    assert outcome.findings == [], str(outcome)
    assert outcome.statuses["sms sent"] > 10
