"""Reads a sheet of an .xlsx file through `workbook_program`, a process that it cannot outlive or outgrow."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import NamedTuple

import msgspec

from core.directory.csv_cells import RowError
from core.directory.importing.csv_rows import Record

_PROGRAM = Path(__file__).parent / "workbook_program.py"
_SECONDS = 90


class Sheet(NamedTuple):
    """The rows that are not empty, with their numbers, and what cannot be read in them."""

    rows: list[Record]
    errors: list[RowError]


class _Printed(msgspec.Struct):
    rows: list[Record]
    errors: list[tuple[int, str, str, str, str]]


_decode = msgspec.json.Decoder(_Printed).decode


async def read_sheet(path: Path, name: str) -> Sheet:
    """Return a sheet. `name`: "" for the only one with values. A file that cannot be read is an error of its row 1."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(_PROGRAM), str(path), name, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env={}
    )
    try:
        async with asyncio.timeout(_SECONDS):
            printed, _ = await process.communicate()
    except TimeoutError:
        printed = b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        message = "The workbook cannot be read: it is damaged, has a password, or is too large. Save it anew as .xlsx."
        return Sheet([], [RowError(1, "", "WORKBOOK_UNREADABLE", message)])
    found = _decode(printed)
    return Sheet(found.rows, [RowError(*error) for error in found.errors])
