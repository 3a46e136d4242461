"""Reads the header of a CSV file: which column of the import each cell names, in any case and in Russian. Pure."""

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from core.directory.csv_cells import LEFT_OUT
from core.directory.importing.errors import MOST_ERRORS, ImportRefused, RowError
from core.model.text.characters import counted, nfc, with_plain_spaces

_REASONS = ("ошибка", "error")
"""Names of the last column of a file of wrong rows, which is corrected and imported again."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a kind of file has. `families`: prefixes, such as "contacts." in contacts.telegram. `names`:
    other names of columns, as `normal` returns them. `identifying`: columns and families of which a file needs one.
    `parts`: columns that are joined to the column `whole`; `part_names`: names that mean a part beside another part.
    """

    required: Sequence[str]
    optional: Sequence[str] = ()
    families: Sequence[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    identifying: Sequence[str] = ()
    whole: str = ""
    parts: Sequence[str] = ()
    part_names: Mapping[str, str] = field(default_factory=dict)

    def column(self, written: str) -> str | None:
        """Return the column that a cell of a header names; None if there is none."""
        for family in self.families:
            if written.strip().casefold().startswith(family):
                return f"{family}{normal(written.strip()[len(family) :])}"
        name = normal(written)
        name = LEFT_OUT if name in _REASONS else self.names.get(name, name)
        return (
            name if name == LEFT_OUT or name in (*self.required, *self.optional) or self._is_in_family(name) else None
        )

    def columns(self, cells: Sequence[str]) -> list[str | None]:
        """Return the column of each cell of a header; "" for an empty cell."""
        found = [self.column(cell) if cell else "" for cell in cells]
        if not set(found) & set(self.parts):
            return found
        return [self.part_names.get(normal(cell), name) for cell, name in zip(cells, found, strict=True)]

    def _is_in_family(self, name: str) -> bool:
        return any(name.startswith(family) and len(name) > len(family) for family in self.families)

    @property
    def shown(self) -> list[str]:
        return [*self.required, *self.optional, *(f"{family}…" for family in self.families)]


@dataclass(frozen=True, slots=True)
class Header:
    """`columns`: the column at each place; "" for a place without a name. `written`: column → how the file names it.
    `parts`: those that are joined to the column `whole`, in the order of the file. `cells`: as the file has them.
    """

    number: int
    columns: Sequence[str]
    written: Mapping[str, str]
    cells: Sequence[str]
    whole: str = ""
    parts: Sequence[str] = ()


def normal(written: str) -> str:
    """Return a name in the form in which names are compared: "Эл.почта:" is "эл почта"."""
    text = with_plain_spaces(nfc(written)).casefold().replace("ё", "е").strip(" \t:*")
    return " ".join(text.replace(".", " ").split()) if not text.isascii() else " ".join(text.split())


def empty_file() -> ImportRefused:
    """Return the refusal of a file without a header."""
    return ImportRefused([RowError(1, "", "CSV_EMPTY", "The file is empty: its first row must name the columns.")])


def read_header(number: int, cells: Sequence[str], columns: Columns, chosen: Sequence[str] = ()) -> Header:
    """Read the first row: which column is what. `chosen`: the column at each place, in place of what the row says.
    Raises ImportRefused CSV_EMPTY, COLUMN_UNKNOWN, COLUMN_MISSING, COLUMN_REPEATED, PERSON_UNIDENTIFIED,
    COLUMNS_OF_ANOTHER_FILE.
    """
    if not cells:
        raise empty_file()
    if chosen and len(chosen) != len(cells):
        message = f"The file has {counted(len(cells), 'column')}, and {len(chosen)} were named."
        raise ImportRefused([RowError(number, "", "COLUMNS_OF_ANOTHER_FILE", message)])
    found = columns.columns(chosen or cells)
    errors = [RowError(number, *error) for error in _errors(cells, found, columns)]
    if errors:
        raise ImportRefused(list(islice(errors, MOST_ERRORS)))
    names = [name or "" for name in found]
    written = {name: cell for name, cell in zip(names, cells, strict=True) if name and name != LEFT_OUT}
    parts = [name for name in names if name in columns.parts]
    if parts:
        written[columns.whole] = ", ".join(written[part] for part in parts)
    return Header(number, names, written, cells, columns.whole, parts)


def _errors(cells: Sequence[str], found: Sequence[str | None], columns: Columns) -> Iterator[tuple[str, str, str]]:
    """Yield column, code and message of each error."""
    for cell, name in zip(cells, found, strict=True):
        if name is None:
            yield cell[:64], "COLUMN_UNKNOWN", f"The columns are {', '.join(columns.shown)}.{_hint(cell, columns)}"
    for name in columns.required:
        if name not in found:
            yield name, "COLUMN_MISSING", f"The file has no column {name!r}."
    for name, count in Counter(filter(None, found)).items():
        if count > 1 and name != LEFT_OUT:
            yield name, "COLUMN_REPEATED", f"The column {name!r} occurs {count} times."
    yield from _errors_of_set({name for name in found if name}, columns)


def _errors_of_set(found: Collection[str], columns: Columns) -> Iterator[tuple[str, str, str]]:
    """Yield the errors of the columns together, each of which is right."""
    if columns.whole in found and any(part in found for part in columns.parts):
        yield columns.whole, "COLUMN_REPEATED", f"The {columns.whole} is there as a whole and in parts: leave out one."
    if columns.identifying and not any(name.startswith(tuple(columns.identifying)) for name in found):
        message = "No column says who is meant: add id, email or contacts.CHANNEL (ИД, Почта, Телефон …)."
        yield columns.identifying[0], "PERSON_UNIDENTIFIED", message


def _hint(cell: str, columns: Columns) -> str:
    close = difflib.get_close_matches(normal(cell), [*columns.shown, *columns.names], 1)
    return f" Did you mean {close[0]!r}?" if close else ""
