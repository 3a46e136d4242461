"""What the check of a page of rows returns."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from core.directory.importing.csv_rows import Row
from core.directory.importing.errors import RowError
from core.directory.importing.journal import Step
from core.directory.importing.reader import Reader


@dataclass(slots=True)
class Page:
    """The checked rows: what is to be written for them, or their errors. `rows`: how many were checked."""

    rows: int = 0
    steps: list[Step] = field(default_factory=list)
    errors: list[RowError] = field(default_factory=list)
    created: int = 0
    updated: int = 0

    def count(self, is_new: bool) -> None:
        """Count one valid row."""
        self.created += is_new
        self.updated += not is_new


Check = Callable[[Reader, Sequence[Row]], AsyncIterator[Page]]
"""Checks the rows of a file against the directory, in pages."""
