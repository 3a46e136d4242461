"""The README, the architecture page and the index of decisions lead to files that exist."""

import re
from functools import cache
from pathlib import Path

from tests.support.paths import ROOT

DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("decisions/*.md"), *ROOT.glob("examples/*/README.md")]
NAMING = [ROOT / "README.md", DOCS / "architecture.md", *DOCS.glob("decisions/*.md")]


def test_every_link_leads_to_a_file() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#]+)\)", page.read_text())]
    assert [(page, link) for page, link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_place_in_a_page_that_a_link_names_exists() -> None:
    for page in PAGES:
        links = re.findall(r"\]\((?!\w+://)([^)#]*)#([^)]+)\)", page.read_text())
        lost = [link for link in links if link[1] not in places_of(page.parent / link[0] if link[0] else page)]
        assert lost == [], page


@cache
def places_of(page: Path) -> set[str]:
    """Return the names by which links reach the headings and the marked places of a page."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    return {*plain, *re.findall(r'<a id="([^"]+)"', text)}


def test_every_path_that_is_named_exists() -> None:
    named = r"(?<![\w/.-])(?:bench|cli|core|couriers|delivery|docs|examples|lua|sandbox|tests)/[\w/.-]*\w"
    paths = [(page, path) for page in NAMING for path in re.findall(named, page.read_text())]
    assert [(page, path) for page, path in paths if not (ROOT / path).exists()] == []


def test_a_message_is_followed_through_seven_files() -> None:
    steps = re.findall(r"^\| (\d) \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert steps == list("1234567")


def test_every_decision_is_in_the_index() -> None:
    indexed = re.findall(r"\]\((\d{4}-[^)]+)\)", (DOCS / "decisions" / "README.md").read_text())
    assert sorted(indexed) == sorted(path.name for path in (DOCS / "decisions").glob("0*.md"))
