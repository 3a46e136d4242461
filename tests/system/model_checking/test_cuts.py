"""A crash may end the append-only file at any byte; no half script and no stuck task comes back.

`./ada test` cuts at the start of every command and at a sample of the other bytes, `./ada prove cuts` at every byte.
"""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.servers import program_of
from tests.system.model_checking.cuts import Cutter, record

LAST_BYTES = 4000


@pytest.mark.parametrize(
    ("kind", "last_bytes", "every"), [("valkey", 350, 70), pytest.param("redis", 300, 100, marks=pytest.mark.long)]
)
async def test_a_server_started_on_a_cut_file_has_no_half_script_and_nothing_is_stuck(
    kind: str, last_bytes: int, every: int, long_form: bool, tmp_path: Path
) -> None:
    if long_form:
        last_bytes, every = LAST_BYTES, 1
    program = program_of(kind)
    recorded = await record(tmp_path / "workload", program)
    for before, after in pairwise(recorded.marks):
        assert before.size < after.size, f"“{after.script}” wrote nothing"
        assert before.state != after.state, f"“{after.script}” changed nothing"
    cuts = recorded.cuts(last_bytes, every)
    assert len(cuts) > last_bytes / every
    await Cutter(recorded, tmp_path / "cut", program).try_all(cuts)
