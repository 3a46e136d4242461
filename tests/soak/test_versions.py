"""Two versions of Ada work side by side on one server: every second process runs another `core` and other scripts."""

import shutil
import tarfile
from pathlib import Path

import pytest

from tests.crash.program import ROOT
from tests.soak.soak import Plan, Soak

SECONDS, SEED = 8, 7
BEFORE = Path(__file__).parent / "before.tar.gz"


def as_landed_before(directory: Path) -> None:
    """`core` and `lua` of an earlier commit: ORIGIN.md."""
    with tarfile.open(BEFORE) as reader:
        reader.extractall(directory, filter="data")


def with_other_texts(directory: Path) -> None:
    """Ours, but for a line more in every script: each has another hash and does the same."""
    for folder in ("core", "lua"):
        shutil.copytree(ROOT / folder, directory / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for script in (directory / "lua").glob("*.lua"):
        head, _, body = script.read_text().partition("\n\n")
        script.write_text(f"{head}\n\nlocal another_version = true\n{body}")


@pytest.mark.timeout(120)
@pytest.mark.row("K-24")
@pytest.mark.parametrize("made", [as_landed_before, with_other_texts])
async def test_two_versions_side_by_side_lose_double_and_disorder_nothing(tmp_path: Path, made: object) -> None:
    assert callable(made)
    made(tmp_path / "before")
    said: list[str] = []
    soak = Soak(tmp_path / "soak", Plan(SECONDS, SEED, before=tmp_path / "before"), said.append)
    outcome = await soak.run()
    assert outcome.is_good, "\n".join([*said, *outcome.findings()[:50], str(outcome.verdict)])
    assert outcome.verdict.tasks > 100
    ours, other = soak.scripts[str(ROOT / "core")], soak.scripts[str(tmp_path / "before" / "core")]
    assert ours
    assert other
    if made is with_other_texts:
        assert not ours & other
