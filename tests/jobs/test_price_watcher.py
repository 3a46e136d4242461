"""Runs the tests of examples/price_watcher, as its author does."""

from pathlib import Path

import pytest

from examples.price_watcher import test_watching as its_tests
from examples.price_watcher import watching

TESTS = [value for name, value in vars(its_tests).items() if name.startswith("test_")]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
async def test_the_example_passes_its_tests(test: object) -> None:
    assert callable(test)
    await test()


def test_the_example_has_less_than_60_lines() -> None:
    assert len(Path(watching.__file__).read_text(encoding="utf-8").splitlines()) < 60
