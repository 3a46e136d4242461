"""The patterns of the cookbook and the laundry bot: no problems, their own tests pass, and they are short (C-112)."""

from pathlib import Path

import pytest

from scenarios.check import check
from scenarios.testing.bot_tests import run_tests
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples"
COOKBOOK = [
    "approval", "booking", "broadcast", "button-value", "deep-link", "else", "escalation", "language", "menu",
    "opening-hours", "quiz", "reminder", "report", "support-desk",
]  # fmt: skip
LONGEST = {**{f"cookbook/{name}": 39 for name in COOKBOOK}, "laundry-bot": 60}
"""Folder → lines of all its files, with its tests."""


@pytest.mark.parametrize("name", LONGEST)
async def test_an_example_is_short_has_no_problems_and_its_tests_pass(name: str) -> None:
    folder = EXAMPLES / name
    checked = check(folder, {})
    assert checked.problems == ()
    verdicts, problems = await run_tests(folder, checked.bot)
    assert ([one.problem for one in verdicts if one.problem], problems) == ([], [])
    assert verdicts
    assert sum(lines_of(file) for file in folder.rglob("*.yaml")) <= LONGEST[name]


def lines_of(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def test_the_cookbook_has_these_patterns_and_says_what_each_is_for() -> None:
    assert sorted(path.name for path in (EXAMPLES / "cookbook").iterdir() if path.is_dir()) == COOKBOOK
    page = (EXAMPLES / "cookbook" / "README.md").read_text(encoding="utf-8")
    assert [name for name in COOKBOOK if f"[{name}]({name}/scenarios/" not in page] == []
