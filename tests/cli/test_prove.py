"""`./ada prove` with the options of the part `mutation`; the parts themselves are in docs/proof.md."""

import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from cli.commands.development import prove
from cli.main import main
from tests.support.paths import ROOT

ECHO = ("a part", ("-c", "import sys; print(*sys.argv[1:])"))


@pytest.fixture
def only_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parts print their arguments."""
    monkeypatch.setattr(prove, "PARTS", {"mutation": ECHO, "cuts": ECHO})


def test_package_seed_and_count_reach_the_mutation_and_no_other_part(
    only_echo: None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--package", "core/queue", "--package", "jobs", "--seed", "0", "--count", "5", "--json"]
    assert main(["prove", *words]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    options = "--seed=0 --count=5 --package=core/queue --package=jobs"
    assert {one["part"]: one["summary"] for one in shown} == {"mutation": options, "cuts": "no output"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["soak", "--seed", "7"], "ada: soak has no --seed\n"),
        (["histories", "--count", "7"], "ada: histories has no --count\n"),
        (["cluser"], "ada: 'cluser' is not one of interleavings, cuts, "),
    ],
)
def test_an_option_that_a_part_does_not_have_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["prove", *words]) == 2
    assert capsys.readouterr().err.startswith(message)


def test_the_mutation_accepts_these_options(tmp_path: Path) -> None:
    """No mutant is tried: the sample is empty."""
    words = ["-m", "tests.system.mutation", "--package=jobs", "--seed=7", "--count=0", f"--keep={tmp_path}"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines()[-1] == "jobs, seed 7: 0 of 0 killed (0%)"
    assert (done.returncode, done.stderr) == (1, "")


SLOW = "import signal; print('[ 45%]', flush=True); signal.pause()"


def test_a_long_part_shows_how_far_it_is_and_ends_at_its_bound(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A part of twenty minutes printed nothing until it ended, and one that waited for ever was not ended."""
    monkeypatch.setattr(prove, "PARTS", {"scenarios": ("a part", ("-c", SLOW))})
    monkeypatch.setattr(prove, "BOUNDS", {"scenarios": timedelta(seconds=3)})
    monkeypatch.setattr(prove, "EVERY", 0.5)
    assert main(["prove"]) == 1
    shown = capsys.readouterr()
    assert re.search(r"^scenarios: \d+ s: \[ 45%\]$", shown.err, re.MULTILINE)
    assert "(not over after 0:00:03)" in shown.out
