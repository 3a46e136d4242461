"""The list of an event's fields is complete: it decides which names the check of a bot calls a slip."""

import re

from core.updates.event_fields import EVENT_FIELDS
from delivery.schemas.events import EventRequest
from tests.support.paths import ROOT


def test_all_fields_that_can_be_handed_in_are_in_the_list() -> None:
    assert {*EventRequest.__struct_fields__} <= EVENT_FIELDS


def test_the_guide_explains_the_fields_of_the_list_and_no_others() -> None:
    rows = [
        line.split("|")[1] for line in (ROOT / "docs" / "events.md").read_text().splitlines() if line.startswith("| `")
    ]
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert explained <= EVENT_FIELDS
    families = tuple(name.rpartition("_")[0] + "_" for name in explained)
    assert [name for name in EVENT_FIELDS - explained if not name.startswith(families)] == ["source"]
