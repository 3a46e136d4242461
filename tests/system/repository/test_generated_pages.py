"""The generated pages match the code."""

import pytest

from cli.commands.development.docs import PAGES, PLACE


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_matches_the_code(name: str) -> None:
    assert (PLACE / name).read_text() == PAGES[name](), "run ./ada docs"
