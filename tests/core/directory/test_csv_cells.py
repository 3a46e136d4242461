"""Texts of CSV cells: what the export writes is what the import reads, and no spreadsheet takes it for a formula."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.directory.csv_cells import escaped, joined, listed, plain
from core.directory.importing import headers
from tests.support.paths import ROOT

_TEXTS = st.text(st.sampled_from("'=+-@ \tа1;\""), max_size=6)


@given(_TEXTS)
def test_an_escaped_text_is_read_as_it_was(text: str) -> None:
    assert plain(escaped(text)) == text


@given(_TEXTS)
def test_no_cell_begins_as_a_formula(text: str) -> None:
    assert not escaped(text).startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("+79991112233", "'+79991112233"),
        ("-100200300", "'-100200300"),
        ("@anna", "'@anna"),
        ("=1+1", "'=1+1"),
        ("'=1", "''=1"),
        ("O'Hara", "O'Hara"),
        ("'Анна'", "'Анна'"),
        ("Анна", "Анна"),
    ],
)
def test_a_cell_has_an_apostrophe_only_where_a_spreadsheet_would_change_it(text: str, cell: str) -> None:
    assert escaped(text) == cell


@given(st.lists(st.text(st.sampled_from('а1;"@+'), min_size=1, max_size=5), max_size=3))
def test_the_items_of_a_cell_are_read_as_they_were(items: list[str]) -> None:
    assert listed(joined(items)) == items


def test_the_guide_lists_all_russian_names_of_columns() -> None:
    listed_rows = set((ROOT / "docs" / "import.md").read_text().splitlines())
    for kind, names in headers.COLUMNS.items():
        for column in names.values():
            also_called = ", ".join(name for name, of in names.items() if of == column)
            assert f"| `{kind}` | {column} | {also_called} |" in listed_rows
