"""Two versions of Ada work side by side on one server: every second process runs another `core` and other scripts."""

import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.system.soak.soak import Plan, Soak

SECONDS, LONG_SECONDS, SEED = 4, 60, 7
EARLIER = "51f64fe"
"""One of the first commits of the current layout; a shallow clone lacks it. Another layout needs another commit."""


def has_earlier_version() -> bool:
    return subprocess.run(["git", "cat-file", "-e", EARLIER], cwd=ROOT, capture_output=True).returncode == 0


def earlier_version(directory: Path) -> None:
    """The earlier version with its own soak programs. They share with today's only their command line and the lines
    of the journal.
    """
    command = ["git", "archive", EARLIER, "core", "lua", "cli/command.py", "cli/processes", "tests/system/soak"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as reader:
        reader.extractall(directory, filter="data")


def other_script_hashes(directory: Path) -> None:
    """This version with one more line in every script, so each script has another hash."""
    for folder in ("core", "lua"):
        shutil.copytree(ROOT / folder, directory / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for script in (directory / "lua").glob("**/*.lua"):
        head, _, body = script.read_text().partition("\n\n")
        script.write_text(f"{head}\n\nlocal another_version = true\n{body}")


# The long form runs the earlier version, too: beside the other hashes it takes a minute and shows the same scripts.
VERSIONS = [
    *([pytest.param(earlier_version, marks=pytest.mark.long)] if has_earlier_version() else []),
    other_script_hashes,
]


@pytest.mark.parametrize("make", VERSIONS)
async def test_two_versions_side_by_side_lose_double_and_reorder_nothing(
    tmp_path: Path, make: Callable[[Path], None], long_form: bool
) -> None:
    make(tmp_path / "before")
    log: list[str] = []
    soak = Soak(
        tmp_path / "soak", Plan(LONG_SECONDS if long_form else SECONDS, SEED, before=tmp_path / "before"), log.append
    )
    outcome = await soak.run()
    assert outcome.is_good, "\n".join([*log, *outcome.findings()[:50], str(outcome.verdict)])
    assert outcome.verdict.tasks > 50
    ours, other = soak.scripts[str(ROOT / "core")], soak.scripts[str(tmp_path / "before" / "core")]
    assert ours
    assert other
    if make is other_script_hashes:
        assert not ours & other
