"""The lines of `./ada actions`."""

from cli.commands.installation.actions import describe

ACTION = {
    "at": "2026-11-23T12:00:00+00:00",
    "name": "office",
    "via": "console",
    "what": "POST /v1/cancellations",
    "target": "/v1/cancellations",
    "count": 2,
    "why": "wrong date",
}


def test_a_line_says_who_changed_what_by_which_way_how_many_and_why() -> None:
    assert describe(ACTION).endswith("office (console)  POST /v1/cancellations (2): wrong date")
    assert describe({**ACTION, "count": 1, "why": ""}).endswith("office (console)  POST /v1/cancellations")
