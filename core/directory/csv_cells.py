"""The texts of CSV cells: how the export writes values, how the import reads them, what a dry run compares; and the
errors of an import, by row and column. Pure.

A spreadsheet takes a cell that begins with = + - @ for a formula, and makes 79991112233 of +79991112233. So the export
writes an apostrophe in front of such a cell, and of one with blanks at its ends; the import takes it away again
(docs/decisions/0088). `plain(escaped(text))` is the text, whatever it is.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from core.errors import Invalid
from core.model.history_key import Id
from core.model.people import Group, Supergroup, User
from core.model.text.characters import counted

Cells = Mapping[str, str]
"""Column → text."""

CONTACTS = "contacts."
LEFT_OUT = "-"
"""In place of the name of a column: what the file has in it is not read."""
FIELDS = "fields."
_APOSTROPHE = "'"
_BLANKS = " \t"
_SEPARATOR = ";"
_RISKY = re.compile(r"'*[=+\-@\s]")
MOST_ERRORS = 100
"""Errors that are reported at once."""


class FileKind(StrEnum):
    """The kind of the rows of a file."""

    USERS = "users"
    CONTACTS = "contacts"
    GROUPS = "groups"
    MEMBERS = "members"
    SUPERGROUPS = "supergroups"
    OWNERSHIPS = "ownerships"

    @property
    def singular(self) -> str:
        """One of them, in words."""
        return {"users": "person"}.get(self.value, self.value.removesuffix("s"))


def escaped(text: str) -> str:
    """Return the text as a cell that no spreadsheet takes for a formula or a number with a sign."""
    return f"{_APOSTROPHE}{text}" if _RISKY.match(text) or text.endswith(tuple(_BLANKS)) else text


def plain(cell: str) -> str:
    """Return the text of a cell, without blanks at its ends unless it is escaped."""
    if cell.startswith(_APOSTROPHE) and (_RISKY.match(cell, 1) or cell.endswith(tuple(_BLANKS))):
        return cell.removeprefix(_APOSTROPHE)
    return cell.strip(_BLANKS)


def listed(cell: str) -> list[str]:
    """Return the items of a cell that has several: separated by semicolons or line breaks, in quotation marks if they
    have one of these themselves.
    """
    lines = csv.reader(cell.splitlines(), delimiter=_SEPARATOR, skipinitialspace=True)
    return [item for line in lines for part in line if (item := part.strip())]


def joined(items: Iterable[Id]) -> str:
    cell = io.StringIO()
    csv.writer(cell, delimiter=_SEPARATOR, lineterminator="").writerow(items)
    return cell.getvalue()


def user_cells(user: User) -> Cells:
    """Return the cells of a person, without its id; a channel without addresses has none."""
    return {
        "name": user.name or "",
        "email": user.email or "",
        "role": user.role or "",
        "locale": user.locale or "",
        "opt_out": joined(user.opt_out),
        **({"external_ids": joined(user.external_ids)} if user.external_ids else {}),
        **({"guardians": joined(user.guardians)} if user.guardians else {}),
        **({"blocked_guardians": joined(user.blocked_guardians)} if user.blocked_guardians else {}),
        **({"blocked": "true"} if user.blocked else {}),
        **{f"{CONTACTS}{channel}": joined(addresses) for channel, addresses in user.contacts.items()},
        **{f"{FIELDS}{name}": value for name, value in user.fields.items()},
    }


def group_cells(group: Group) -> Cells:
    return {"title": group.title or "", "virtual": "true" if group.virtual else "false"}


def supergroup_cells(supergroup: Supergroup, groups: Sequence[Id]) -> Cells:
    return {"title": supergroup.title or "", "groups": joined(groups)}


class RowError(Struct, frozen=True):
    """One error of a file. `row`: as a spreadsheet shows it, the header is row 1; `column`: as the file names it, or
    "". `value`: of the cell, "" if it is not about one.
    """

    row: int
    column: str
    code: str
    message: str
    value: str = ""


class WrongRow(Struct, frozen=True):
    """A row that is not imported. `cells`: as the file has them."""

    row: int
    cells: Sequence[str]
    errors: Sequence[RowError]


class ImportRefused(Invalid):
    """The file has errors; nothing was written. `errors`: the first ones, by row; `count`: of all."""

    code_of_class, nothing = "ROWS_INVALID", "Nothing was imported"

    def __init__(self, errors: Sequence[RowError], count: int = 0) -> None:
        self.errors = errors
        self.count = max(count, len(errors))
        detail = f"{self.nothing}: {counted(self.count, 'error')}. The first: {_shown(errors[0])}"
        super().__init__(self.code_of_class, detail)


class TableRefused(ImportRefused):
    """The table of recipients has errors; nothing was sent."""

    code_of_class, nothing = "TABLE_INVALID", "Nothing was sent"


def _shown(error: RowError) -> str:
    column = f", column {error.column}" if error.column else ""
    return f"row {error.row}{column}: {error.message}"
