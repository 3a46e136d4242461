"""The pictures of the documents: each is made by `tools/console_pictures.py`, shown somewhere, and small."""

import re

from tests.support.paths import ROOT
from tools.console_pictures import SHOWN

PICTURES = ROOT / "docs" / "console"
LARGEST = 64 * 1024


def test_each_picture_is_made_by_the_tool_shown_in_a_document_and_small() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = [name for page in pages for name in re.findall(r"console/([\w-]+)\.webp", page.read_text(encoding="utf-8"))]
    files = {one.stem: one.stat().st_size for one in PICTURES.glob("*.webp")}
    assert set(files) == set(SHOWN) == set(shown)
    assert {name: size for name, size in files.items() if size > LARGEST} == {}
