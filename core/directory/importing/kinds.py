"""The kinds of files that can be imported, and their columns. Pure.

A column that a file does not have leaves what exists as it is; an empty cell clears the field. A cell with several
items separates them by semicolons.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from core.directory.csv_cells import CONTACTS, FIELDS, FileKind, RowError, listed
from core.directory.importing import headers
from core.directory.importing.csv_rows import CsvRow
from core.directory.importing.headers import Columns, normal
from core.errors import Invalid
from core.model.contacts.addresses import canonical
from core.model.history_key import Id
from core.model.own_fields import OwnFieldsByName
from core.model.people import LOCALES, OBJECT_KINDS, ROLES, faults_of_id, id_text

_NUMBER_OF_SHEET = re.compile(r"-?[0-9]+\.0+")
_YES = frozenset({"true", "yes", "1", "да"})
_NO = frozenset({"false", "no", "0", "нет", ""})


GUARDIANS = ("guardians", "blocked_guardians")
NAME_PARTS = ("last_name", "first_name", "middle_name")

_SHAPES: Mapping[FileKind, Columns] = {
    FileKind.USERS: Columns(
        (),
        (
            *("id", "name", *NAME_PARTS, "email", "role", "locale", "opt_out", "groups", "external_ids", "blocked"),
            *GUARDIANS,
        ),
        (CONTACTS, FIELDS),
        identifying=("id", "email", CONTACTS),
        whole="name",
        parts=NAME_PARTS,
        part_names=headers.PARTS_OF_A_NAME,
    ),
    FileKind.CONTACTS: Columns(("user", "channel", "address")),
    FileKind.GROUPS: Columns(("id",), ("title", "virtual")),
    FileKind.MEMBERS: Columns(("group", "user")),
    FileKind.SUPERGROUPS: Columns(("id",), ("title", "groups")),
    FileKind.OWNERSHIPS: Columns(("user", "kind", "id")),
}
COLUMNS: Mapping[FileKind, Columns] = {
    kind: replace(shape, names=headers.COLUMNS[kind]) for kind, shape in _SHAPES.items()
}


def columns_with(kind: FileKind, own_fields: OwnFieldsByName) -> Columns:
    """Return the columns of a file of a tenant. A typed own field may be named without `fields.`, unless a column
    has this name.
    """
    columns = COLUMNS[kind]
    if FIELDS not in columns.families:
        return columns
    own = {normal(name): f"{FIELDS}{name}" for name in own_fields if columns.column(name) is None}
    return replace(columns, names={**own, **columns.names})


KEY_COLUMNS: Mapping[FileKind, tuple[str, ...]] = {
    FileKind.USERS: ("id",),
    FileKind.CONTACTS: ("user", "channel", "address"),
    FileKind.GROUPS: ("id",),
    FileKind.MEMBERS: ("group", "user"),
    FileKind.SUPERGROUPS: ("id",),
    FileKind.OWNERSHIPS: ("user", "kind", "id"),
}
"""The columns whose cells together may occur only once in a file."""


def parse_id(text: str) -> Id:
    """Return a whole number if the text is one in its usual form, else the text."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= 19 and str(int(text)) == text:
        return int(text)
    return text


def form_errors(kind: FileKind, row: CsvRow) -> Iterator[RowError]:
    """Emit the errors of a row that show without the directory, except those that the model finds in a whole value."""
    for column in KEY_COLUMNS[kind]:
        if kind is FileKind.USERS and not row.cells.get(column):
            yield from _errors_without_id(row)
        elif not row.cells[column]:
            yield row.error(column, "REQUIRED", f"The cell {column!r} is empty.")
        elif column != "address" and _NUMBER_OF_SHEET.fullmatch(row.cells[column]):
            message = "A spreadsheet writes 201.0 for the id 201 unless the column is text: make it text."
            yield row.error(column, "ID_OF_SPREADSHEET", message)
        elif column in ("id", "user", "group"):
            yield from as_row_errors(row, faults_of_id(parse_id(row.cells[column]), column))
    yield from _errors_of_switches(row)
    if kind is FileKind.OWNERSHIPS and object_kind(row) not in OBJECT_KINDS:
        yield row.error("kind", "WRONG_VALUE", f"Allowed values: {', '.join(OBJECT_KINDS)}.")


def _errors_of_switches(row: CsvRow) -> Iterator[RowError]:
    for column in ("virtual", "blocked"):
        if column in row.cells and row.cells[column].lower() not in _YES | _NO:
            yield row.error(column, "WRONG_VALUE", "Allowed values: true, false, or an empty cell.")


def _errors_without_id(row: CsvRow) -> Iterator[RowError]:
    if not row.cells.get("email") and not any(contact_cells(row).values()):
        message = "The row has neither an id nor an address that says who is meant: fill in one of them."
        yield row.error("id", "PERSON_UNIDENTIFIED", message)


def as_row_errors(row: CsvRow, faults: Iterator[Invalid]) -> Iterator[RowError]:
    """Yield the faults of a value as errors of its row. The path "contacts.sms.0" is in the column contacts.sms."""
    for fault in faults:
        column = next((name for name in row.cells if f"{fault.path}.".startswith(f"{name}.")), fault.path)
        yield row.error(column, fault.code, fault.detail)


def row_key(kind: FileKind, row: CsvRow) -> tuple[str, ...] | None:
    """Return what a row is about: two rows of a file may not be about the same. None for people, whose rows may have
    no id.
    """
    if kind is FileKind.USERS:
        return None
    key = tuple(row.cells[column] for column in KEY_COLUMNS[kind])
    if kind is FileKind.CONTACTS:
        user, channel, address = key
        return user, channel, canonical(channel, address)
    if kind is FileKind.OWNERSHIPS:
        return row.cells["user"], object_kind(row), row.cells["id"]
    return key


# the fields that a row sets


def user_fields(row: CsvRow) -> dict[str, Any]:
    """Return the fields of a person that the file has, without contacts."""
    found: dict[str, Any] = {name: row.cells[name] or None for name in ("name", "email") if name in row.cells}
    if "role" in row.cells:
        found["role"] = _translated(row.cells["role"], headers.ROLES, ROLES) or None
    if "locale" in row.cells:
        found["locale"] = _translated(row.cells["locale"], headers.LOCALES, LOCALES) or None
    if "opt_out" in row.cells:
        found["opt_out"] = listed(row.cells["opt_out"])
    for column in ("external_ids", *GUARDIANS):
        if column in row.cells:
            found[column] = tuple(listed(row.cells[column]))
    if "blocked" in row.cells:
        found["blocked"] = row.cells["blocked"].lower() in _YES
    return found


def _translated(cell: str, names: Mapping[str, str], values: Collection[str]) -> str:
    """Return the value that a cell names in Russian or in any case of letters; the cell itself if it names none."""
    name = cell.casefold()
    return names.get(name, name if name in values else cell)


def object_kind(row: CsvRow) -> str:
    """Return the kind of an ownership: "group", "supergroup", or a text that is neither."""
    return _translated(row.cells["kind"], headers.OBJECT_KINDS, OBJECT_KINDS)


def contact_cells(row: CsvRow) -> dict[str, list[str]]:
    """Return channel → addresses, for the channels that the file has."""
    return {name.removeprefix(CONTACTS): listed(cell) for name, cell in row.cells.items() if name.startswith(CONTACTS)}


def field_cells(row: CsvRow) -> dict[str, str]:
    """Return own field → value, for the fields that the file has."""
    return {name.removeprefix(FIELDS): cell for name, cell in row.cells.items() if name.startswith(FIELDS)}


def group_fields(row: CsvRow) -> dict[str, Any]:
    """Return the fields of a group or supergroup that the file has, without its groups."""
    found: dict[str, Any] = {"title": row.cells["title"] or None} if "title" in row.cells else {}
    if "virtual" in row.cells:
        found["virtual"] = row.cells["virtual"].lower() in _YES
    return found


def group_ids(row: CsvRow) -> list[Id] | None:
    """Return the groups of a supergroup, each once; None if the file has no such column."""
    if "groups" not in row.cells:
        return None
    ids = [parse_id(item) for item in listed(row.cells["groups"])]
    return list({id_text(one): one for one in ids}.values())
