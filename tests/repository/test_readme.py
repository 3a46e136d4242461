"""The README leads somewhere."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_a_message_is_followed_through_seven_files() -> None:
    steps = re.findall(r"^\| (\d) \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert steps == list("1234567")
