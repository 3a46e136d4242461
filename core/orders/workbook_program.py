"""Reads one sheet of an .xlsx file and prints its rows as JSON: `python -I workbook_program.py FILE SHEET`.

A process of its own, with little memory and time: whatever a malicious file does to the library, it does to no other
request. Nothing is executed: of a formula the value counts that was stored with it. It imports nothing of Ada.

Prints {"rows": [[number, [cell, …]], …], "errors": [[row, column, code, message, value], …]}.
"""

import json
import re
import resource
import sys
import zipfile
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any

from openpyxl import load_workbook
from openpyxl.reader.excel import ExcelReader

MEMORY, SECONDS = 1024 * 2**20, 60
MOST_UNPACKED = 128 * 2**20
"""Bytes of all parts of the file. A workbook of 10,000 rows and 50 columns has 30 million."""
MOST_PARTS = 2000
LAST_ROW, LAST_COLUMN = 20_000, 300
_PLAIN_NUMBER = re.compile(r"(?:#,##)?0(?:\.(0+))?(%)?")
_UNSTORED = re.compile(
    rb'(<c(?=\s)[^>]*?\sr="([A-Z]+)(\d+)"[^>]*>)\s*<f(?:\s[^>]*)?(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v></v>)?\s*</c>'
)
_NAMED = 5
"""Places that an error names."""

Error = tuple[int, str, str, str, str]


class SheetRefused(Exception):
    """The file cannot be read. `value`: what is wrong in it; several sheets are separated by line breaks."""

    def __init__(self, code: str, message: str, value: str = "", row: int = 1) -> None:
        self.error: Error = (row, "", code, message, value)


def limit_resources() -> None:
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS)):
        with suppress(ValueError, OSError):  # a system that knows no such limit
            resource.setrlimit(kind, (most, most))


def read(path: str, wanted: str) -> dict[str, Any]:
    check_size(path)
    sheet = chosen(load_workbook(path, data_only=True, keep_links=False), wanted)
    if sheet.max_row > LAST_ROW or sheet.max_column > LAST_COLUMN:
        raise SheetRefused(
            "TABLE_TOO_LARGE",
            f"The sheet goes to row {sheet.max_row} and column {sheet.max_column}; at most {LAST_ROW} and {LAST_COLUMN}"
            " are read. Delete the rows and columns that are empty, too.",
        )
    check_shape(sheet)
    rows, errors = [], unstored_values(path, sheet.title)
    for number, cells in enumerate(sheet.iter_rows(), 1):
        texts = [text_of(cell) for cell in cells]
        if any(texts):
            rows.append((number, texts))
        errors += [
            (
                number,
                cell.column_letter,
                "CELL_ERROR",
                f"The cell {cell.coordinate} shows the error {cell.value}.",
                str(cell.value),
            )
            for cell in cells
            if cell.data_type == "e"
        ]
    return {"rows": rows, "errors": errors}


def unstored_values(path: str, title: str) -> list[Error]:
    """Return an error for each formula without a value: what has written the file computes none. The value of a formula
    may be an empty text, whose cell is of the type `str`.
    """
    reader = ExcelReader(path, read_only=True)
    reader.read()
    part = next(relation.target for sheet, relation in reader.parser.find_sheets() if sheet.name == title)
    xml = reader.archive.read(part.lstrip("/"))
    message = "has a formula, but no value. Open the file in a spreadsheet and save it."
    return [
        (int(row), column.decode(), "FORMULA_UNSTORED", f"The cell {column.decode()}{int(row)} {message}", "")
        for cell, column, row in _UNSTORED.findall(xml)
        if b't="str"' not in cell
    ]


def check_size(path: str) -> None:
    """Check how large the file becomes. A part that says less than it has is cut there, and is damaged then."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_UNPACKED:
        message = f"The workbook has more than {MOST_UNPACKED // 2**20} MB when it is unpacked."
        raise SheetRefused("TABLE_TOO_LARGE", message)


def chosen(workbook: Any, wanted: str) -> Any:
    """Return the sheet with this name; without one, the only visible sheet with cells."""
    sheets = [one for one in workbook.worksheets if one.sheet_state == "visible"]
    filled = [one for one in sheets if has_values(one)]
    names, value = ", ".join(repr(one.title) for one in filled), "\n".join(one.title for one in filled)
    if wanted:
        named = [one for one in sheets if one.title.strip().casefold() == wanted.strip().casefold()]
        if not named:
            raise SheetRefused("SHEET_UNCLEAR", f"There is no sheet {wanted!r}; the sheets are {names}.", value)
        return named[0]
    if not filled:
        raise SheetRefused("CSV_EMPTY", "The table is empty: its first row must name the columns.")
    if len(filled) > 1:
        raise SheetRefused(
            "SHEET_UNCLEAR", f"The workbook has several sheets with values: {names}. Say which one.", value
        )
    return filled[0]


def has_values(sheet: Any) -> bool:
    last = min(sheet.max_row, LAST_ROW)
    rows = sheet.iter_rows(max_row=last, max_col=min(sheet.max_column, LAST_COLUMN), values_only=True)
    return any(value is not None for row in rows for value in row)


def check_shape(sheet: Any) -> None:
    """Refuse what people see otherwise than it is stored: merged cells, whose value is in one of them, and hidden rows,
    to which a filter should perhaps not send.
    """
    merged = sorted(sheet.merged_cells.ranges, key=lambda one: (one.min_row, one.min_col))
    if merged:
        named = ", ".join(map(str, merged[:_NAMED]))
        message = f"Cells are merged: {named}{' …' if len(merged) > _NAMED else ''}. Each row needs cells of its own."
        raise SheetRefused("CELLS_MERGED", message, named, merged[0].min_row)
    hidden = sorted(number for number, row in sheet.row_dimensions.items() if row.hidden)
    if hidden:
        named = ", ".join(map(str, hidden[:_NAMED]))
        message = f"Rows are hidden: {named}{' …' if len(hidden) > _NAMED else ''}. Show them, or delete them."
        raise SheetRefused("ROWS_HIDDEN", message, named, hidden[0])


def text_of(cell: Any) -> str:
    """Return a cell as it is shown, as far as that is the same everywhere: 4.5, 85%, 31.12.2026."""
    match cell.value:
        case None:
            return ""
        case bool(value):
            return "да" if value else "нет"
        case int() | float() as value:
            return number_text(value, cell.number_format)
        case datetime() as value:
            return f"{value:%d.%m.%Y}" if value.time() == time(0) else f"{value:%d.%m.%Y %H:%M}"
        case date() as value:
            return f"{value:%d.%m.%Y}"
        case time() as value:
            return f"{value:%H:%M}"
        case timedelta() as value:
            return str(value)
        case value:
            return str(value)


def number_text(value: float, form: str) -> str:
    plain = _PLAIN_NUMBER.fullmatch(form)
    if plain and (plain[1] or plain[2]):
        decimals = len(plain[1] or "")
        return f"{value * 100:.{decimals}f}%" if plain[2] else f"{value:.{decimals}f}"
    return str(int(value)) if value == int(value) and abs(value) < 1e18 else f"{value:.15g}"


def printed(path: str, wanted: str) -> dict[str, Any]:
    try:
        return read(path, wanted)
    except SheetRefused as refusal:
        return {"rows": [], "errors": [refusal.error]}


if __name__ == "__main__":
    limit_resources()
    json.dump(printed(*sys.argv[1:]), sys.stdout)
