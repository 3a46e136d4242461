"""docs/add-a-courier.md agrees with the code."""

import re
from typing import get_args, get_type_hints

from couriers.sending import Courier, Outcome
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "add-a-courier.md").read_text(encoding="utf-8")


def first_column(heading: str) -> list[str]:
    """Return the names in the first column of the table below a heading, without their arguments."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)", section, re.MULTILINE)


def test_the_example_is_the_echo_courier() -> None:
    example = PAGE.split("## The example\n", 1)[1].split("```python\n", 1)[1].split("\n```", 1)[0]
    assert example == (ROOT / "couriers" / "echo" / "courier.py").read_text(encoding="utf-8").rstrip()


def test_every_attribute_of_a_courier_is_explained() -> None:
    assert first_column("The six attributes") == list(get_type_hints(Courier))


def test_every_outcome_is_explained() -> None:
    assert sorted(first_column("The outcomes")) == sorted(kind.__name__ for kind in get_args(Outcome))
