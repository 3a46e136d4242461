"""A crash may end the append-only file at any byte; the command of tests/model_checking/cuts.py tries every one."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.model_checking.cuts import Cutter, record
from tests.support.servers import program_of

pytestmark = [pytest.mark.row("K-31", "K-17"), pytest.mark.timeout(180)]


@pytest.mark.parametrize(("kind", "count", "every"), [("valkey", 1300, 12), ("redis", 1000, 40)])
async def test_wherever_the_file_ends_no_half_script_comes_back_and_nothing_is_stuck(
    kind: str, count: int, every: int, tmp_path: Path
) -> None:
    program = program_of(kind)
    recorded = await record(tmp_path / "busy", program)
    for before, after in pairwise(recorded.marks):
        assert before.size < after.size, f"“{after.script}” wrote nothing"
        assert before.state != after.state, f"“{after.script}” changed nothing"
    cuts = recorded.cuts(count, every)
    assert len(cuts) > count / every
    await Cutter(recorded, tmp_path / "cut", program).try_all(cuts)
