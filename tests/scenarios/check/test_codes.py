"""Every code of a problem is explained to authors."""

import re

from tests.support.paths import ROOT


def test_the_guide_explains_every_code_of_a_problem() -> None:
    files = [path for part in ("loader", "check") for path in (ROOT / "scenarios" / part).rglob("*.py")]
    sources = [
        path.read_text() for path in files if path.name not in ("samples.py", "rehearsal.py")
    ]  # which have refusals of actions
    codes = {
        code for text in sources for code in re.findall(r'"([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*)"', text) if len(code) > 4
    }
    codes |= {"MODIFIER_UNKNOWN", "MODIFIER_PARAMETER", "NOT_UTF8"}
    explained = re.findall(r"`([A-Z][A-Z0-9_]+)`", (ROOT / "docs" / "scenarios.md").read_text())
    assert codes - set(explained) == set()
    assert len(codes) > 30
