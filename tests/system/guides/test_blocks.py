"""The marks of a guide's code blocks: what has none is a command, and what is neither is an error."""

from pathlib import Path

import pytest

from tests.system.guides.blocks import Unmarked, blocks_of
from tests.system.guides.reader import is_in


def found(folder: Path, text: str) -> list[tuple[str, str, str]]:
    page = folder / "guide.md"
    page.write_text(text)
    return [(block.mark, block.about, block.text) for block in blocks_of(page)]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("```sh\n./ada up\n```\n", [("run", "", "./ada up\n")]),
        ("1. Start it:\n\n       ./ada up\n", [("run", "", "./ada up\n")]),
        ("<!-- file: .env -->\n\n    A=1\n", [("file", ".env", "A=1\n")]),
        ("<!-- not run: needs root -->\n```\napt\n```\n", [("not run", "needs root", "apt\n")]),
        ("Text.\n<!-- do: a\nb\n-->\n<!-- prints: c | d -->\n", [("do", "a\nb", ""), ("prints", "c | d", "")]),
        ("<!-- magic: vk -->\n\ntext\n", []),
    ],
)
def test_a_block_has_the_mark_in_front_of_it(tmp_path: Path, text: str, blocks: list[tuple[str, str, str]]) -> None:
    assert found(tmp_path, text) == blocks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nx = 1\n```\n", "1: a block of python without a mark"),
        ("<!-- file: x -->\n\ntext\n", "the mark “file” has no block behind it"),
        ("<!-- notrun: x -->\n\n    ./ada\n", "1: “notrun” is no mark"),
    ],
)
def test_a_block_that_is_not_run_and_has_no_mark_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Unmarked, match=message):
        found(tmp_path, text)


def test_a_mark_at_the_end_of_a_page_needs_a_block(tmp_path: Path) -> None:
    with pytest.raises(Unmarked, match="has no block behind it"):
        found(tmp_path, "text\n\n<!-- file: x -->\n")


@pytest.mark.parametrize(
    ("text", "printed", "is_there"),
    [
        ('{"used":1}', '{"used":3}', True),
        ("api  http://127.0.0.1:8080", "api          http://127.0.0.1:29182\n", True),
        ("key file /…/api_key", "key file     /tmp/x/data/api_key", True),
        ("finished", "queued", False),
    ],
)
def test_what_was_printed_is_compared_without_numbers_and_spaces(text: str, printed: str, is_there: bool) -> None:
    assert is_in(text, printed) == is_there
