"""The result of checking a page of rows."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from core.directory.csv_cells import Cells
from core.directory.importing.csv_rows import CsvRow
from core.directory.importing.errors import RowError
from core.directory.importing.journal import Step
from core.directory.importing.reader import RowReader


class FieldChange(Struct, frozen=True):
    """A field that a row changes, its values as cells; "" for none."""

    field: str
    old: str
    new: str


class RowChange(Struct, frozen=True):
    """The change that a row makes. `id`: of the person, group or supergroup; `created`: whether that is new."""

    row: int
    id: str
    created: bool
    fields: Sequence[FieldChange]


@dataclass(slots=True)
class CheckedPage:
    """The checked rows: what is to be written for them, or their errors. `rows`: how many were checked."""

    rows: int = 0
    steps: list[Step] = field(default_factory=list)
    errors: list[RowError] = field(default_factory=list)
    changes: list[RowChange] = field(default_factory=list)
    created: int = 0
    updated: int = 0
    unchanged: int = 0

    def note(
        self,
        row: CsvRow,
        subject: str,
        old: Cells | None,
        new: Cells,
        *,
        blank: Cells | None = None,
        relates: bool = False,
    ) -> bool:
        """Count a valid row, and keep what it changes. Returns whether it changes anything. `old`: None of what is new,
        which is compared with `blank`. `relates`: the row is about a relation, so a change is a new relation.
        """
        fields = _changed((blank or {}) if old is None else old, new)
        if old is not None and not fields:
            self.unchanged += 1
            return False
        self.created += relates or old is None
        self.updated += not relates and old is not None
        self.changes.append(RowChange(row.number, subject, old is None, fields))
        return True


def _changed(old: Cells, new: Cells) -> list[FieldChange]:
    names = dict.fromkeys((*old, *new))
    return [
        FieldChange(name, old.get(name, ""), new.get(name, ""))
        for name in names
        if old.get(name, "") != new.get(name, "")
    ]


Check = Callable[[RowReader, Sequence[CsvRow]], AsyncIterator[CheckedPage]]
"""Checks the rows of a file against the directory, in pages."""
