"""Where placeholders and settings differ from those of Coreness, or are the same (C-114); the reasons stand in
docs/scenarios-coreness.md.
"""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.services.scenarios import max_age_of
from scenarios.placeholders import Scope, render
from tests.support.paths import ROOT

VALUES: dict[str, Any] = {
    "number": 100,
    "list": ["a"],
    "empty": [],
    "mapping": {},
    "null": None,
    "seconds": 1735140600,
    "x": "a",
    "big": 10**20,
    "date": "2024-12-25 15:30:00",
}
PAGE = (ROOT / "docs" / "scenarios-coreness.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'true'}", "true"),
        ("{'false'}", "false"),
        ("{empty}", []),
        ("{mapping}", {}),
        ("{number|+'50'}", 150),
        ("{x|equals:'a'}", True),
        ("{null}", None),
        ("a{null}b", "ab"),
        ("{null|to_date}", None),
        ("{null|code}", None),
        ("{date|format:timestamp}", 1735140600),
        ("{seconds|to_date}", "2024-12-25 00:00:00+00:00"),
        ("{big|format:datetime}", 10**20),
        ("{missing}", "{missing}"),
    ],
)
def test_what_differs_from_coreness_is_as_its_page_says(text: str, value: Any) -> None:
    found = render(text, Scope(VALUES)).value
    assert (found, type(found)) == (value, type(value))


def test_the_page_names_each_assertion_that_does_not_hold() -> None:
    differences = PAGE.partition("## Differences of placeholders")[2].partition("\n## ")[0]
    of_all, hold = (int(number) for number in re.findall(r"Of the (\d+) assertions .* (\d+) hold", differences)[0])
    counts = [int(row.split(" | ")[-2]) for row in re.findall(r"^\| .* \|$", differences, re.MULTILINE)[1:]]
    assert (sum(counts), len(counts)) == (of_all - hold, 7)


@pytest.mark.parametrize("section", ["event_manager", "tg_event_bot"])
@pytest.mark.parametrize(("written", "age"), [("90", timedelta(seconds=90)), ("2h", timedelta(hours=2))])
def test_both_sections_set_the_greatest_age_of_an_event(
    tmp_path: Path, section: str, written: str, age: timedelta
) -> None:
    (tmp_path / "settings.yaml").write_text(f"{section}: {{max_event_age_seconds: {written}}}\n")
    assert max_age_of(tmp_path) == age
