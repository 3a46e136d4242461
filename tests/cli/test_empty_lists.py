"""A list without items says so to people, and prints nothing for programs."""

from argparse import Namespace
from collections.abc import AsyncIterator

import pytest

from cli.client.verbs import print_all, print_stream


async def items(*found: str) -> AsyncIterator[str]:
    for one in found:
        yield one


@pytest.mark.parametrize(
    ("found", "as_json", "out", "err"),
    [
        ((), False, "", "nothing found\n"),
        ((), True, "", ""),
        (("a", "b"), False, "A\nB\n", ""),
        (("a", "b"), True, '"a"\n"b"\n', ""),
    ],
)
async def test_items_are_printed_line_by_line_and_that_there_are_none_is_said_on_stderr(
    capsys: pytest.CaptureFixture[str], found: tuple[str, ...], as_json: bool, out: str, err: str
) -> None:
    arguments = Namespace(json=as_json)
    assert print_all(arguments, found, str.upper) == 0
    assert tuple(capsys.readouterr()) == (out, err)
    assert await print_stream(arguments, items(*found), str.upper) == 0
    assert tuple(capsys.readouterr()) == (out, err)
