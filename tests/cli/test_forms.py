"""The table of a form on the terminal and as CSV."""

from zoneinfo import ZoneInfo

from cli.commands.bots.forms import aligned, cells

TABLE = {
    "columns": ["name", "rooms"],
    "rows": [
        {
            "person": "vk:7",
            "first": "2026-11-29T21:58:58.575Z",
            "last": "2026-11-30T09:00:00.000Z",
            "answers": {"rooms": ["a", "b"], "name": "A\nB"},
        }
    ],
}


def test_a_form_is_a_table_with_aligned_columns() -> None:
    assert aligned(cells(TABLE, ZoneInfo("Europe/Moscow"))) == [
        "person  first                      last                       name  rooms",
        'vk:7    2026-11-30 00:58:58+03:00  2026-11-30 12:00:00+03:00  A B   ["a", "b"]',
    ]
