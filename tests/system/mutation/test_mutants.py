"""The mutation run itself: what it changes, and that a break that tests cover is noticed."""

import ast
import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.system.mutation.coverage_map import CoverageMap, files_of_tests
from tests.system.mutation.import_lines import lines_of_statement
from tests.system.mutation.live_code import CannotChange, functions_below, replace_code
from tests.system.mutation.mutants import PACKAGES, mutants_of, sample
from tests.system.mutation.report import Report, Verdict
from tests.system.mutation.trial import Trials, nearby_tests

_SOURCE = '''
"""A docstring is 1."""
LIMIT = 3


async def serve(count: int = 0, *, kind: str = "message") -> bool:
    log.info("limit %s", 5)
    assert count != 7
    await task
    if ready and count < LIMIT:
        return True
    return "é" in names if count else done


def find(name: str) -> str | None:
    if name == "é":
        return "here"
    if name:
        return seen[name]
    return None
'''


def test_each_kind_of_change_is_made_and_nothing_else() -> None:
    changes = {(mutant.line, mutant.original, mutant.replacement) for mutant in mutants_of(_SOURCE, "file.py")}
    assert changes == {
        (3, "3", "4"),
        (6, "0", "-1"),
        (6, '"message"', "''"),
        (9, "await task", "None"),
        (10, "ready and count < LIMIT", "(ready or count < LIMIT)"),
        (10, "ready and count < LIMIT", "(not (ready and count < LIMIT))"),
        (10, "count < LIMIT", "count <= LIMIT"),
        (11, "True", "False"),
        (12, '"é" in names', "'é' not in names"),
        (12, "count", "(not (count))"),
        (12, '"é" in names if count else done', "None"),
        (16, 'name == "é"', "name != 'é'"),
        (18, "name", "(not (name))"),
        (19, "seen[name]", "None"),
    }


def test_mutants_of_the_code_parse_and_a_seed_names_the_same_ones() -> None:
    for mutant in sample(50, seed=3, packages=["jobs", "core/queue"]):
        source = Path(mutant.file).read_bytes()
        ast.parse(source[: mutant.start] + mutant.replacement.encode() + source[mutant.end :])
    assert sample(20, 5, ["jobs"]) == sample(20, 5, ["jobs"]) != sample(20, 6, ["jobs"])


@pytest.mark.long
@pytest.mark.timeout(600)  # it runs pytest three times
def test_near_by_tests_notice_a_break_and_pass_without_it(tmp_path: Path) -> None:
    """The whole way: they are measured; then one line is broken, one is left as it is, and one is run by no test."""
    file = "core/model/clock.py"
    broken = next(one for one in mutants_of((ROOT / file).read_text(), file) if one.original == "now is None")
    same = replace(broken, line=broken.line - 1, end=broken.start, replacement="")
    unknown = next(mutants_of("x = f(1)\n", "tools/python_versions.py"))
    trials = Trials("core/model", tmp_path, budget=20)
    verdicts = {one.mutant: one for one in trials.run([broken, same, unknown])}
    assert verdicts[broken.name].outcome == "failed"
    assert verdicts[broken.name].by.startswith("tests/core/model/test_clock.py::")
    assert verdicts[same.name].outcome == "tests pass"
    assert verdicts[unknown.name].outcome == "no test runs this line"


def test_a_second_run_repeats_only_what_survived(tmp_path: Path) -> None:
    killed, survived, new = mutants = sample(3, 1, ["jobs"])
    report = Report(tmp_path, "core", 1, mutants)
    assert report.undecided() == mutants
    report.add(Verdict(killed.name, "failed", "tests/a.py::test_b"))
    report.add(Verdict(survived.name, "tests pass", "7"))
    again = Report(tmp_path, "core", 1, mutants)
    assert again.undecided() == [survived, new]
    again.add(Verdict(survived.name, "did not end", ""))
    assert Report(tmp_path, "core", 1, mutants).undecided() == [new]


def test_the_report_lists_what_is_left(tmp_path: Path) -> None:
    killed, survived, _ = mutants = sample(3, 1, ["jobs"])
    report = Report(tmp_path, "core/queue", 4, mutants)
    report.add(Verdict(killed.name, "failed", "tests/a.py::test_b"))
    report.add(Verdict(survived.name, "tests pass", "7"))
    report.write()
    assert (tmp_path / "core.queue-4.txt").read_text().splitlines() == [
        "core/queue, seed 4: 1 of 3 killed (33%), 1 not tried",
        "  1 failed",
        "  1 tests pass",
        f"SURVIVED {survived.name} (tests pass: 7; 0.0 s)",
    ]


def test_a_verdict_no_longer_counts_when_the_code_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mutant,) = mutants = sample(1, 1, ["jobs"])
    Report(tmp_path, "core", 1, mutants).add(Verdict(mutant.name, "failed", ""))
    moved = replace(mutant, start=mutant.start + 1)
    assert Report(tmp_path, "core", 1, mutants).undecided() == []
    assert Report(tmp_path, "core", 1, [moved]).undecided() == [moved]


def test_of_the_tests_of_a_line_those_named_after_its_file_come_first_and_then_the_quickest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.system.mutation.import_lines.ROOT", tmp_path)
    (tmp_path / "replies.py").write_text("x = 1\n")
    named, quick, slow = (
        "tests/couriers/test_replies.py::test_a",
        "tests/couriers/test_b.py::test_b",
        "tests/test_c.py::test_c",
    )
    covered = CoverageMap({"replies.py": {1: [quick, slow, named]}}, {named: 3.0, quick: 1.0, slow: 2.0})
    assert covered.covering("replies.py", 1, budget=10) == [named, quick, slow]
    assert covered.covering("replies.py", 1, budget=1) == [named, quick]


def test_near_by_are_the_tests_of_the_folder_of_the_same_name_or_of_the_one_around_it() -> None:
    assert nearby_tests("core/queue") == "tests/core/queue"
    assert nearby_tests("delivery/api/deliveries") == "tests/delivery"
    assert all(nearby_tests(package) == f"tests/{package}" for package in PACKAGES)


def test_near_by_are_also_the_tests_that_are_named_after_a_file() -> None:
    assert "tests/delivery/test_sessions.py" in files_of_tests("tests/core/queue", ["core/sessions/sessions.py"])
    assert all(
        file.startswith("tests/core/queue/") for file in files_of_tests("tests/core/queue", ["core/queue/no.py"])
    )


@pytest.mark.parametrize(
    "source",
    [
        "_PAGE = 500",
        "_SOCKET_TIMEOUT: float = 1 + 4",
        "async def wait():\n    async with asyncio.timeout(1):\n        pass",
        "PAIRS = dict(zip(NAMES, VALUES, strict=True))",
        "if TYPE_CHECKING:\n    LIMIT = 3",
        "def __repr__(self):\n    return show(self)",
        "log.info('sent', count=1)",
    ],
)
def test_what_changes_no_behaviour_is_left_alone(source: str) -> None:
    assert [mutant.name for mutant in mutants_of(source, "file.py")] == []


def test_a_function_of_a_running_program_gets_the_code_of_the_changed_source(tmp_path: Path) -> None:
    path, before = tmp_path / "sample.py", b"X = 1\ndef f(n):\n    return n < 3\n"
    names: dict[str, Any] = {}
    exec(compile(before, str(path), "exec"), names)  # as an import does
    gc.freeze()  # as tests/conftest.py does: it hides all objects from `gc.get_objects`
    functions = functions_below(tmp_path)[str(path)]
    replace_code(functions, path, before, before.replace(b"<", b"<="))
    assert names["f"](3) is True
    with pytest.raises(CannotChange):
        replace_code(functions, path, before, before.replace(b"X = 1", b"X = 2"))


@pytest.mark.parametrize(
    ("source", "line", "statement"),
    [
        ("x = f(\n    1,\n)\n", 2, range(1, 4)),
        ("if (\n    a\n):\n    b\n", 2, range(1, 4)),
        ("x = 1\n", 9, range(9, 10)),
    ],
)
def test_tests_of_a_line_are_those_of_its_statement(
    source: str, line: int, statement: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.system.mutation.import_lines.ROOT", tmp_path)
    file = f"{tmp_path.name}.py"
    (tmp_path / file).write_text(source)
    assert lines_of_statement(file, line) == statement
