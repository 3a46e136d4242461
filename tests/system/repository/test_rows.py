"""The table of rows (tests/support/row_tests.txt): which test shows which row of the specification."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from tests.support import rows
from tests.support.paths import ROOT, TESTS

HOW = (
    'a row is claimed by a line "D-50 tests/core/orders/test_tables.py::test_name" in tests/support/row_tests.txt, '
    "for a test that shows its whole sentence; afterwards `LC_ALL=C sort -u -o FILE FILE`"
)


@cache
def defined_in(file: str) -> frozenset[str]:
    """Return the names of the tests that this file itself defines; empty if it is no file of tests."""
    path = ROOT / file
    if not path.name.startswith("test_") or not path.is_file():
        return frozenset()
    return frozenset(names_in(ast.parse(path.read_text(encoding="utf-8")), file))


def names_in(node: ast.Module | ast.ClassDef, name: str) -> Iterator[str]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from names_in(child, f"{name}::{child.name}")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and child.name.startswith("test_"):
            yield f"{name}::{child.name}"


def test_each_line_names_a_row_and_a_test_that_exist() -> None:
    """A test that many classes inherit shows no row, nor does a whole file or class."""
    known = rows.titles()
    wrong = [
        f"{row} {test}"
        for row, test in rows.pairs()
        if row not in known or test not in defined_in(test.partition("::")[0])
    ]
    assert wrong == [], HOW


def test_the_table_is_sorted_and_has_no_line_twice() -> None:
    lines = rows.TABLE.read_text(encoding="utf-8").splitlines()
    assert [second for first, second in pairwise(lines) if first.encode() >= second.encode()] == [], HOW


def test_no_mark_claims_a_row() -> None:
    mark = re.compile(r"^ *(@|pytestmark.*)pytest\.mark\.row\b", re.MULTILINE)
    marked = [str(file.relative_to(TESTS)) for file in TESTS.rglob("*.py") if mark.search(file.read_text("utf-8"))]
    assert marked == [], HOW
