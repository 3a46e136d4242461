"""The table of a form on the terminal and as CSV."""

from cli.commands.bots.forms import aligned, cells

TABLE = {
    "columns": ["name", "rooms"],
    "rows": [{"person": "vk:7", "first": "1", "last": "2", "answers": {"rooms": ["a", "b"], "name": "A\nB"}}],
}


def test_a_form_is_a_table_with_aligned_columns() -> None:
    assert aligned(cells(TABLE)) == ["person  first  last  name  rooms", 'vk:7    1      2     A B   ["a", "b"]']
