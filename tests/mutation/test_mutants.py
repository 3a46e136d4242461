"""The mutation run itself: what it changes, and that a break that tests cover is noticed."""

import ast
from dataclasses import replace
from pathlib import Path

from tests.mutation.__main__ import copies, killed
from tests.mutation.mutants import all_mutants, mutants_of, sample

_SOURCE = '''
"""A docstring is 1."""
LIMIT = 3


async def serve(count: int = 0) -> bool:
    log.info("limit %s", 5)
    assert count != 7
    await task
    if ready and count < LIMIT:
        return True
    return "é" in names if count else done
'''


def test_each_kind_of_change_is_made_and_nothing_else() -> None:
    changes = {(mutant.line, mutant.original, mutant.replacement) for mutant in mutants_of(_SOURCE, "file.py")}
    assert changes == {
        (3, "3", "4"),
        (6, "0", "1"),
        (9, "await task", "None"),
        (10, "ready and count < LIMIT", "(ready or count < LIMIT)"),
        (10, "ready and count < LIMIT", "(not (ready and count < LIMIT))"),
        (10, "count < LIMIT", "count <= LIMIT"),
        (11, "True", "False"),
        (12, '"é" in names', "'é' not in names"),
        (12, "count", "(not (count))"),
    }


def test_every_mutant_of_the_code_parses_and_a_seed_names_the_same_ones() -> None:
    for mutant in sample(50, seed=3):
        source = Path(mutant.file).read_bytes()
        ast.parse(source[: mutant.start] + mutant.replacement.encode() + source[mutant.end :])
    assert sample(20, seed=5) == sample(20, seed=5) != sample(20, seed=6)


def test_a_break_is_noticed_by_the_tests_that_cover_it() -> None:
    tests = ["tests/couriers/test_telegram_split.py"]
    mutant = next(one for one in all_mutants() if one.original == "limit == len(text)")
    unchanged = replace(mutant, end=mutant.start, replacement="")
    with copies(1) as places:
        place = places.get()
        assert not killed(unchanged, place, tests, usual=20)
        assert killed(mutant, place, tests, usual=20)
