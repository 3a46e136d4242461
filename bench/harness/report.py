"""Results as a table, or with --json as one JSON object per line. Progress and targets go to stderr."""

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence

Cell = str | int | float | None
Row = Mapping[str, Cell]

_BEGAN = time.monotonic()


class Rows:
    """Prints each row at once. A row with different columns starts a new table."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._columns: Sequence[str] = ()
        self._widths: Sequence[int] = ()

    def show(self, row: Row) -> None:
        if self._as_json:
            print(json.dumps(row, ensure_ascii=False), flush=True)
            return
        if list(row) != self._columns:
            self._start_table(row)
        print(_line([format_cell(cell) for cell in row.values()], self._widths), flush=True)

    def _start_table(self, row: Row) -> None:
        if self._columns:
            print()
        self._columns = list(row)
        self._widths = [max(len(name), len(format_cell(cell)), 10) for name, cell in row.items()]
        print(_line(self._columns, self._widths))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def format_cell(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell


def log_progress(line: str) -> None:
    """Prints a line of progress, with the seconds since the start."""
    print(f"[{time.monotonic() - _BEGAN:6.1f} s] {line}", file=sys.stderr, flush=True)


def report_target(what: str, value: float, target: str, is_met: bool) -> None:
    """Prints a target and whether the measured value meets it. It does not change the exit code."""
    log_progress(f"{'met   ' if is_met else 'MISSED'}  {what}: {format_cell(round(value, 2))}, target {target}")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile; `share` 1.0 is the largest. Raises ValueError for no values."""
    if not values:
        raise ValueError("nothing was measured")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)
