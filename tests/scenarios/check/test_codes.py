"""Every code of a problem is explained to authors."""

import re

from scenarios.actions import own_actions
from scenarios.check.names import codes
from scenarios.schema.declaration import COMMON_FIELDS
from tests.support.paths import ROOT


def test_the_guide_explains_every_code_of_a_problem() -> None:
    files = [path for part in ("loader", "check") for path in (ROOT / "scenarios" / part).rglob("*.py")]
    sources = [path.read_text() for path in files]
    codes = {
        code for text in sources for code in re.findall(r'"([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*)"', text) if len(code) > 4
    }
    codes |= {"MODIFIER_UNKNOWN", "MODIFIER_PARAMETER", "NOT_UTF8"}
    explained = re.findall(r"`([A-Z][A-Z0-9_]+)`", (ROOT / "docs" / "scenarios-check.md").read_text())
    assert codes - set(explained) == set()
    assert len(codes) > 30


_FAILS = re.compile(
    r"""(?:failed|refused|Refused|Invalid|Conflict|Forbidden|NotFound|AiRefused|AiUnavailable|Ending|code=)"""
    r"""(?:\(\s*)?"([A-Z][A-Z_]{3,})\""""
)


def test_a_condition_may_name_every_code_with_which_an_action_fails() -> None:
    paths = [*(ROOT / "scenarios").rglob("*.py"), *(ROOT / "providers" / "models").rglob("*.py")]
    found = {code for path in paths if path.parent.name != "check" for code in _FAILS.findall(path.read_text())}
    assert found - set(codes()) == set()
    assert len(found) > 60


def test_names_of_coreness_stand_on_their_page_and_not_in_the_reference() -> None:
    aliases = [("all", field) for field in COMMON_FIELDS if field.alias_of]
    aliases += [(f"`{one.name}`", field) for one in own_actions().values() for field in one.fields if field.alias_of]
    rows = {f"| {action} | `{field.name}` | `{field.alias_of}` |" for action, field in aliases}
    assert rows <= set((ROOT / "docs" / "scenarios-coreness.md").read_text().splitlines())
    assert "The same as `" not in (ROOT / "docs" / "scenarios-actions.md").read_text()
    assert len(rows) > 4


def test_the_guide_to_the_first_bot_is_short() -> None:
    assert len((ROOT / "docs" / "scenarios.md").read_text().splitlines()) <= 400
