"""CSV import into the directory: all rows of a file or none.

Guarantees: every error is reported by row and column, and then nothing is written. No function writes more than 250
records, so others are served meanwhile. An import whose process dies is either not begun or completed by another
process. Until the end of an import all other writes to the directory of its tenant are refused (IMPORT_RUNNING).

Neighbours: `core.directory` (records, pages of ids), `core.model.people` (the rules of values).
"""

from core.directory.csv_cells import ImportRefused, RowError, WrongRow
from core.directory.importing.importer import Imported, Importing
from core.directory.importing.journal import ImportState
from core.directory.importing.reader import RowChange
from core.directory.records import ImportRunning

__all__ = [
    "ImportRefused",
    "ImportRunning",
    "ImportState",
    "Imported",
    "Importing",
    "RowChange",
    "RowError",
    "WrongRow",
]
