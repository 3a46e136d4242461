"""The table of `./ada figures`."""

from datetime import UTC
from typing import Any

from cli.commands.installation.reports import describe_figures

FLOW = {"sent": 1234, "not_reached": 12, "done": 99_999, "put": 100_000, "lag_ms": 1.5}
POINT: dict[str, Any] = {"at": 1_790_000_000_000, "flow": None, "ready": 1, "locked": 2, "taken": 3, "oldest_ms": 4000}


def test_the_figures_are_a_table_of_80_columns_with_gaps_and_with_what_did_not_arrive() -> None:
    outcomes = [
        {"channel": "sms", "status": "sent", "reason": "", "count": 1234},
        {"channel": "sms", "status": "failed", "reason": "blocked", "count": 12},
    ]
    table = describe_figures(
        {"step": 300, "points": [POINT, {**POINT, "flow": FLOW}, POINT], "outcomes": outcomes}, UTC
    )
    head, full, gap, _, title, failure = table.split("\n")
    assert full.split()[2:] == ["1234", "12", "99999", "100000", "3", "3", "4.0", "s", "2", "ms"]
    assert gap.split()[2:] == ["-", "-", "-", "-", "3", "3", "4.0", "s", "-"]
    assert (title, failure) == ("Did not arrive:", "      12  sms  failed  blocked")
    assert all(len(line) <= 80 for line in (head, full, gap))
    assert head.index("sent") + 4 == full.index("1234") + 4


def test_without_a_record_the_figures_say_so() -> None:
    assert describe_figures({"step": 300, "points": [POINT], "outcomes": []}, UTC) == "Nothing is recorded yet."
