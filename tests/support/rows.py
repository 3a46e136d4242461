"""Which tests show which row of the specification: row_tests.txt. `./ada test --rows` prints it.

python -m tests.support.rows [--json] [FILE or FOLDER …]
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

TABLE = Path(__file__).parent / "row_tests.txt"
"""A line for each pair: the row, and the name of a test that shows all of its sentence. Sorted."""

Titles = dict[str, str]
Shown = dict[str, list[str]]


def titles() -> Titles:
    """Return row id → its one-line title, from tests/support/rows.txt."""
    lines = (Path(__file__).parent / "rows.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines if line)


def pairs() -> list[tuple[str, str]]:
    """Return the lines of the table: row id, name of a test."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [(row, test) for row, _, test in (line.partition(" ") for line in lines)]


def shown_by(places: Sequence[str]) -> Shown:
    """Return row id → the tests of these files and folders that show it; of all if none is given."""
    shown = Shown()
    for row, test in pairs():
        if not places or test.startswith(tuple(places)):
            shown.setdefault(row, []).append(test)
    return shown


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


if __name__ == "__main__":
    words = sys.argv[1:]
    form = as_json if "--json" in words else as_text
    sys.stdout.write(form(shown_by([word for word in words if not word.startswith("-")])) + "\n")
