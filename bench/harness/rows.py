"""How results are shown: a table for people, one JSON object per line for programs. Progress goes to stderr."""

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence

Cell = str | int | float | None
Row = Mapping[str, Cell]

_BEGAN = time.monotonic()


class Rows:
    """Shows each row as soon as it is known; a row with other columns than the one before begins a new table."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._columns: Sequence[str] = ()
        self._widths: Sequence[int] = ()

    def show(self, row: Row) -> None:
        if self._as_json:
            print(json.dumps(row, ensure_ascii=False), flush=True)
            return
        if list(row) != self._columns:
            self._begin(row)
        print(_line([text_of(cell) for cell in row.values()], self._widths), flush=True)

    def _begin(self, row: Row) -> None:
        if self._columns:
            print()
        self._columns = list(row)
        self._widths = [max(len(name), len(text_of(cell)), 10) for name, cell in row.items()]
        print(_line(self._columns, self._widths))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def text_of(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell


def say(line: str) -> None:
    """Progress, with the seconds since the start."""
    print(f"[{time.monotonic() - _BEGAN:6.1f} s] {line}", file=sys.stderr, flush=True)


def verdict(what: str, found: float, wanted: str, holds: bool) -> None:
    """What a target asks for and whether it holds; a measurement is no test, so it changes no exit code."""
    say(f"{'held  ' if holds else 'MISSED'}  {what}: {text_of(round(found, 2))}, wanted {wanted}")


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile; `share` 1.0 is the largest. Raises ValueError for no values."""
    if not values:
        raise ValueError("nothing was measured")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)
