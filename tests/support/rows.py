"""Maps the rows of the specification to the tests that show them (`@pytest.mark.row`), for `./ada test --rows`."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

Titles = dict[str, str]
Shown = dict[str, list[str]]


def titles() -> Titles:
    """Return row id → its one-line title, from tests/support/rows.txt."""
    lines = (Path(__file__).parent / "rows.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines if line)


def shown_by(items: Iterable[pytest.Item]) -> Shown:
    """Return row id → the tests that show it; a parametrised test counts once. Raises UsageError for an unknown id."""
    known, shown = titles(), Shown()
    for item in items:
        for row in rows_of(item):
            if row not in known:
                raise pytest.UsageError(f"{item.nodeid}: no row {row} in tests/support/rows.txt")
            name = item.nodeid.split("[", 1)[0]
            tests = shown.setdefault(row, [])
            if name not in tests:
                tests.append(name)
    return shown


def rows_of(item: pytest.Item) -> list[str]:
    return [row for mark in item.iter_markers("row") for row in mark.args]


def as_text(shown: Shown) -> str:
    known = titles()
    lines = [line for row in known if row in shown for line in lines_of(row, known[row], shown[row])]
    lacking = [f"  {row} {title}" for row, title in known.items() if row not in shown]
    return "\n".join([*lines, "", f"{len(shown)} of {len(known)} rows have a test; without one:", *lacking])


def lines_of(row: str, title: str, tests: list[str]) -> list[str]:
    return [f"{row} {title}", *(f"     {test}" for test in tests)]


def as_json(shown: Shown) -> str:
    """Return one object per line: {"row", "title", "tests"}."""
    return "\n".join(
        json.dumps({"row": row, "title": title, "tests": shown.get(row, [])}, ensure_ascii=False)
        for row, title in titles().items()
    )
