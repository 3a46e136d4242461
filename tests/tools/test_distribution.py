"""Which tests run on the same pytest worker, and on how many."""

from pathlib import Path

import pytest

from tests.support.distribution import FIRST, MOST_WORKERS, TOGETHER, number_of_workers, pattern_of, unit_of
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/cli/up/test_up.py::test_x", "tests/cli/up/*"),
        ("tests/delivery/console/test_files.py::test_x", "tests/delivery/console/test_[a-k]*"),
        ("tests/delivery/console/test_live.py::test_x[a::b]", "tests/delivery/console/test_[l-z]*"),
        ("tests/system/guides/test_guides.py::test_x[a::b]", "tests/system/guides/test_guides.py::test_x[a::b]"),
        ("tests/system/guides/test_blocks.py::test_x", None),
        ("tests/delivery/test_live.py::test_x", None),
    ],
)
def test_a_unit_shares_an_installation_or_is_a_long_test_or_else_a_file(test: str, unit: str | None) -> None:
    assert unit_of(test) == unit


def test_the_units_that_take_longest_begin_first() -> None:
    first = ["tests/delivery/console/test_live.py::test_x", "tests/system/crash/test_server.py::test_x"]
    assert [pattern_of(test, FIRST) for test in first] == [TOGETHER[1], "tests/system/*"]


def test_every_file_of_the_console_belongs_to_a_unit_that_shares_an_installation() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/delivery/console/test_*.py")]
    assert {unit_of(f"{file}::test_x") for file in files} == set(TOGETHER[:2])


def test_a_worker_that_has_no_file_is_not_started(tmp_path: Path) -> None:
    for name in ("test_a.py", "test_b.py", "conftest.py"):
        (tmp_path / name).touch()
    assert number_of_workers([str(tmp_path)]) == 2
    assert number_of_workers([f"{tmp_path}/test_a.py::test_x", f"{tmp_path}/test_a.py::test_y"]) == 1
    assert number_of_workers(["tests"]) == MOST_WORKERS
    assert number_of_workers([str(tmp_path / "none")]) == 1
