"""The errors of an import: by row and column."""

from collections.abc import Sequence

from msgspec import Struct

from core.errors import Invalid
from core.model.text.characters import counted

MOST_ERRORS = 100
"""Errors that are reported at once."""


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
