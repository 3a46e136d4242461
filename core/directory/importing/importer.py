"""Imports a CSV file: all of it or nothing.

    read the rows ─▶ lock the directory ─▶ check page by page, journal ─▶ commit ─▶ write page by page
    in a thread      of the tenant         the writes                     one step

The journal and what happens after a crash: `core.directory.importing.journal`, docs/decisions/0037.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from core.directory.csv_cells import MOST_ERRORS, FileKind, ImportRefused, RowError, WrongRow
from core.directory.directory import Directory
from core.directory.importing import journal
from core.directory.importing.csv_rows import CsvRow, TableRows, read_rows
from core.directory.importing.journal import ImportLost, Journal, Step
from core.directory.importing.kinds import KEY_COLUMNS, columns_with, form_errors, row_key
from core.directory.importing.people import check_contacts, check_users
from core.directory.importing.reader import Check, CheckedPage, RowChange, RowReader
from core.directory.importing.relations import check_groups, check_members, check_ownerships, check_supergroups
from core.errors import StoreError, StoreUnavailable
from core.redis.store import Store

log = logging.getLogger(__name__)

PAGE_STEPS = 250
"""The most writes of one function: people, memberships, … (decision 0037)."""
_PAGE_SIZE = 2**18
"""Characters of one page of the journal; a page has one step at least."""
_SECONDS_BETWEEN_RECOVERIES = 3.0

CHECKS: Mapping[FileKind, Check] = {
    FileKind.USERS: check_users,
    FileKind.CONTACTS: check_contacts,
    FileKind.GROUPS: check_groups,
    FileKind.MEMBERS: check_members,
    FileKind.SUPERGROUPS: check_supergroups,
    FileKind.OWNERSHIPS: check_ownerships,
}


MOST_CHANGES = 100
"""Changes that a dry run reports."""
MOST_WRONG = 1_000
"""Rows that are left out of an import; with more, the columns of the file are another kind's or the wrong ones."""


class Imported(Struct, frozen=True):
    """The numbers of rows about something new, of changes, and of rows that change nothing. `changes`: the
    first ones, of a dry run. `header`, `wrong`: of a file whose wrong rows are left out. `not_mailed`: the people of
    the file with an address to sign in and none for messages.
    """

    created: int
    updated: int
    unchanged: int = 0
    changes: Sequence[RowChange] = ()
    header: Sequence[str] = ()
    wrong: Sequence[WrongRow] = ()
    not_mailed: int = 0


class Importing:
    """Imports into the directory of any tenant; one per process."""

    def __init__(self, store: Store, directory: Directory) -> None:
        self._store = store
        self._directory = directory

    async def run(
        self,
        tenant: str,
        kind: FileKind,
        file: IO[bytes],
        *,
        dry_run: bool = False,
        channels: Collection[str] | None = None,
        encoding: str = "",
        columns: Sequence[str] = (),
        leave_out_wrong: bool = False,
        mails_to_sign_in: bool = False,
    ) -> Imported:
        """Import a file. With `dry_run` it is only checked. `channels`: the known ones; None if they are not checked.
        `encoding`: as in `decoded`; `columns`: what each column is, "-" for none, in place of the header.
        `leave_out_wrong`: rows with errors are returned, and the others are imported. `mails_to_sign_in`: people
        without a contact of e-mail get messages at the address with which they sign in.

        Raises ImportRefused with the errors by row, ImportRunning, StoreError. After StoreUnavailable it is unknown
        whether the file is imported; a repeat is safe.
        """
        own_fields = await self._directory.own_fields.all(tenant)
        table = await asyncio.to_thread(read_rows, file, columns_with(kind, own_fields), encoding, columns)
        rows, errors = await asyncio.to_thread(_right, kind, table)
        reader = RowReader(
            self._store, self._directory, tenant, channels, own_fields, mails_to_sign_in=mails_to_sign_in
        )
        checking = _Checking(kind, reader, rows)
        if dry_run or errors or leave_out_wrong:
            await checking.run(None)
            errors += checking.errors
        if not leave_out_wrong:
            _refuse(errors)
        checking = await checking.of_right_rows(errors)
        wrong = _wrong(table, errors)
        if dry_run:
            result = replace(checking.result, changes=checking.changes)
        else:
            result = await self._write(tenant, _Checking(kind, reader, checking.rows))
        return replace(result, header=table.header.cells, wrong=wrong) if leave_out_wrong else result

    async def _write(self, tenant: str, checking: "_Checking") -> Imported:
        pages = Journal(self._store, tenant)
        await pages.begin(checking.kind, len(checking.rows))
        try:
            await checking.run(pages)
            _refuse(checking.errors)
            await pages.commit()
        except ImportLost:
            raise StoreUnavailable("The import took too long, so it was given up. Nothing was written.") from None
        except BaseException:  # whatever it is, also a cancellation: nothing of the file stays
            with suppress(StoreError):
                await asyncio.shield(pages.abort())
            raise
        await journal.roll_forward(self._store, tenant)
        return checking.result

    async def progress(self, tenant: str) -> journal.ImportState:
        return await journal.progress(self._store, tenant)

    async def recover(self) -> int:
        """Complete the committed imports whose process is gone, for all tenants. Returns how many."""
        return await journal.roll_forward_all(self._store)

    async def keep_recovering(self) -> None:
        """Run `recover` every 3 seconds, until cancelled."""
        while True:
            try:
                if completed := await self.recover():
                    log.warning("completed %d interrupted imports", completed)
            except StoreError as fault:
                log.warning("interrupted imports cannot be looked for: %s", fault)
            await asyncio.sleep(_SECONDS_BETWEEN_RECOVERIES)


# the form of the file


def _right(kind: FileKind, table: TableRows) -> tuple[list[CsvRow], list[RowError]]:
    """Return the rows without errors of their own, and the errors of the others."""
    rows = _without(table.rows, table.errors)
    errors = [error for row in rows for error in form_errors(kind, row)]
    valid = _without(rows, errors)
    repeated = list(_repeated(kind, valid))
    return _without(valid, repeated), [*table.errors, *errors, *repeated]


def _without(rows: Iterable[CsvRow], errors: Iterable[RowError]) -> list[CsvRow]:
    """Return the rows that have none of these errors."""
    wrong = {error.row for error in errors}
    return [row for row in rows if row.number not in wrong]


def _wrong(table: TableRows, errors: Sequence[RowError]) -> list[WrongRow]:
    """Return the rows with these errors, as the file has them. Raises ImportRefused with more than 1,000 of them."""
    by_row: dict[int, list[RowError]] = {}
    for error in errors:
        by_row.setdefault(error.row, []).append(error)
    if len(by_row) > MOST_WRONG:
        _refuse(errors)
    return [WrongRow(row.number, row.record, by_row[row.number]) for row in table.rows if row.number in by_row]


def _repeated(kind: FileKind, rows: Iterable[CsvRow]) -> Iterator[RowError]:
    first: dict[tuple[str, ...], int] = {}
    for row in rows:
        key = row_key(kind, row)
        number = first.setdefault(key, row.number) if key else row.number
        if number != row.number:
            yield row.error(KEY_COLUMNS[kind][-1], "DUPLICATE_ROW", f"Row {number} is the same {kind.singular}.")


# the check against the directory


class _Checking:
    """Checks the rows of a file; puts what is to be written into a journal, until there is an error."""

    def __init__(self, kind: FileKind, reader: RowReader, rows: Sequence[CsvRow]) -> None:
        self.kind = kind
        self.rows = rows
        self.errors: list[RowError] = []
        self.changes: list[RowChange] = []
        self._reader = reader
        self._total = CheckedPage()

    @property
    def result(self) -> Imported:
        total = self._total
        return Imported(total.created, total.updated, total.unchanged, not_mailed=total.not_mailed)

    async def run(self, pages: Journal | None) -> None:
        """Check all rows. `pages` is aborted at the first error: what follows is checked for the report only."""
        async for page in CHECKS[self.kind](self._reader, self.rows):
            self._add(page)
            if pages and self.errors:
                await pages.abort()
                pages = None
            if pages:
                await self._journal(pages, page)

    async def of_right_rows(self, errors: list[RowError]) -> "_Checking":
        """Return the check of the rows without errors. Errors of rows that need a wrong one are added to `errors`."""
        checking = self
        while checking.errors:
            checking = _Checking(self.kind, self._reader, _without(checking.rows, checking.errors))
            await checking.run(None)
            errors += checking.errors
        return checking

    def _add(self, page: CheckedPage) -> None:
        self.errors += page.errors
        self.changes += page.changes[: MOST_CHANGES - len(self.changes)]
        self._total.rows += page.rows
        self._total.created += page.created
        self._total.updated += page.updated
        self._total.unchanged += page.unchanged
        self._total.not_mailed += page.not_mailed

    async def _journal(self, pages: Journal, page: CheckedPage) -> None:
        for steps in _parts(page.steps):
            await pages.add(steps, self._total.rows)
        if not page.steps:
            await pages.add([], self._total.rows)


def _parts(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield the steps in parts of bounded number and size."""
    part: list[Step] = []
    size = 0
    for step in steps:
        size += sum(map(len, step))
        if part and (len(part) == PAGE_STEPS or size > _PAGE_SIZE):
            yield part
            part, size = [], sum(map(len, step))
        part.append(step)
    if part:
        yield part


def _refuse(errors: Sequence[RowError]) -> None:
    """Refuse a file. Raises ImportRefused with the first errors, by row."""
    if errors:
        raise ImportRefused(sorted(errors, key=lambda one: one.row)[:MOST_ERRORS], len(errors))
