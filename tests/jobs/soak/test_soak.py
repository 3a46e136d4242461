"""The soak of jobs in its short form. The long form is `./ada prove jobs`."""

from pathlib import Path

import pytest

from tests.jobs.soak.plan import Plan, short_plan
from tests.jobs.soak.soak import Soak

SEED = 20261122


@pytest.mark.timeout(900)
async def test_blows_lose_double_and_resume_nothing(tmp_path: Path, long_form: bool) -> None:
    """With another seed: `python -m tests.jobs.soak --seed 7`."""
    log: list[str] = []
    outcome = await Soak(tmp_path, Plan(SEED) if long_form else short_plan(SEED), log.append).run()
    assert outcome.is_good, "\n".join([*log, *outcome.findings[:30], str(outcome)])
    assert len(outcome.blows) == 7
    assert outcome.applications > 0
