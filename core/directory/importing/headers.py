"""Reads the header of a CSV file: which column of the import each cell names, in any case and in Russian. Pure.

docs/import.md lists the names of columns and values that spreadsheets in Russia have.
"""

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from core.directory.csv_cells import CONTACTS, LEFT_OUT, MOST_ERRORS, FileKind, ImportRefused, RowError
from core.model.contacts.addresses import channel_records
from core.model.text.characters import counted, nfc, with_plain_spaces

_REASONS = ("ошибка", "error")
"""Names of the last column of a file of wrong rows, which is corrected and imported again."""

_PERSON = ("ид", "человек", "участник", "пользователь")
_TITLE = ("название", "наименование")
PARTS_OF_A_NAME: Mapping[str, str] = {"имя": "first_name", "name": "first_name"}
"""Names of columns that mean a part beside another part: Имя is the first name beside Фамилия, else the whole name."""
ROLES: Mapping[str, str] = {
    "студент": "student",
    "ученик": "student",
    "преподаватель": "trainer",
    "учитель": "trainer",
    "тренер": "trainer",
    "сотрудник": "staff",
    "администратор": "admin",
}
LOCALES: Mapping[str, str] = {"русский": "ru", "рус": "ru", "английский": "en", "англ": "en"}
OBJECT_KINDS: Mapping[str, str] = {"группа": "group", "супергруппа": "supergroup"}
_SHORT = 3
_VALUES = {
    "role": {value: word for word, value in reversed(list(ROLES.items()))},
    "locale": {value: word for word, value in reversed(list(LOCALES.items()))},
    "kind": {value: word for word, value in OBJECT_KINDS.items()},
}


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
    if chosen and len(chosen) == len(cells) - 1 and normal(cells[-1]) in _REASONS:
        chosen = [*chosen, LEFT_OUT]
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
    unknown = [cell for cell, name in zip(cells, found, strict=True) if name is None]
    for number, cell in enumerate(unknown):
        known = "" if number else f" The columns are {', '.join(columns.shown)}."
        yield cell[:64], "COLUMN_UNKNOWN", f"There is no column of this name.{_hint(cell, columns)}{known}"
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


def _names(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: column for column, names in columns.items() for name in names}


COLUMNS: Mapping[str, Mapping[str, str]] = {
    "users": _names(
        {
            "id": ("ид", "идентификатор", "код", "табельный номер"),
            "name": ("фио", "ф и о", "имя", "фамилия имя отчество", "фамилия и имя", "фамилия имя"),
            "last_name": ("фамилия", "last name", "surname"),
            "first_name": ("first name",),
            "middle_name": ("отчество", "middle name", "patronymic"),
            "email": ("почта", "электронная почта", "эл почта", "e-mail"),
            "role": ("роль",),
            "locale": ("язык",),
            "opt_out": ("отказ", "не писать"),
            "groups": ("группа", "группы", "класс", "классы"),
            "guardians": ("родители", "представители", "законные представители"),
            **{f"{CONTACTS}{channel}": record.column_names for channel, record in channel_records().items()},
        }
    ),
    "contacts": _names({"user": _PERSON, "channel": ("канал",), "address": ("адрес", "контакт")}),
    "groups": _names({"id": ("ид", "группа", "код"), "title": _TITLE, "virtual": ("виртуальная",)}),
    "members": _names({"group": ("группа",), "user": _PERSON}),
    "supergroups": _names({"id": ("ид", "супергруппа", "код"), "title": _TITLE, "groups": ("группы",)}),
    "ownerships": _names({"user": ("владелец", *_PERSON), "kind": ("вид",), "id": ("группа", "код")}),
}


def in_russian(kind: FileKind, rows: Sequence[Sequence[str]], columns: Sequence[str]) -> Sequence[Sequence[str]]:
    """Return rows of an export with the words that the import reads. `columns`: of the export; the header is a row."""
    header = [_HEADERS[kind].get(column, column) for column in columns]
    words = [_VALUES.get(column, {}) for column in columns]

    def translated(row: Sequence[str]) -> Sequence[str]:
        return [known.get(cell, cell) for known, cell in zip(words, row, strict=True)]

    return [header if list(row) == list(columns) else translated(row) for row in rows]


def _first_names(names: Mapping[str, str]) -> Mapping[str, str]:
    """Return column → the first of its names, as a header is written: ФИО, Почта."""
    first: dict[str, str] = {}
    for name, column in names.items():
        first.setdefault(column, name.upper() if len(name) <= _SHORT else name.capitalize())
    return first


_HEADERS = {kind: _first_names(names) for kind, names in COLUMNS.items()}
