"""The pages that are made from the code are as the code says."""

import pytest

from cli.commands.docs import PAGES, PLACE


@pytest.mark.parametrize("name", PAGES)
def test_a_made_page_is_what_the_code_says(name: str) -> None:
    assert (PLACE / name).read_text() == PAGES[name](), "run ./ada docs"
