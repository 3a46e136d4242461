"""CSV imports of the directory, and the exports that an import reads again."""

import asyncio
import io
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import IO, Annotated, Literal

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from core.directory.csv_cells import CONTACTS, FIELDS, MOST_ERRORS, FileKind
from core.directory.exporting import EXPORTED, Exporting
from core.directory.importing import Imported, ImportRefused, ImportState, RowChange, WrongRow
from core.directory.importing.csv_rows import read_beginning, written_records
from core.directory.importing.headers import in_russian
from core.directory.importing.kinds import columns_with
from core.errors import Invalid
from core.model.delivery import Repeat
from core.model.field_types import Encoding, ShortText
from core.orders.workbook import read_sheet
from couriers.channel import channels
from delivery.http.context import Request, Response
from delivery.http.decoding import check_content_type
from delivery.http.fields import RequestModel
from delivery.http.idempotency import respond_once
from delivery.http.receiving import receive_file
from delivery.http.responses.downloads import CONTENT_TYPE, ExportQuery, Rows, respond_csv
from delivery.http.responses.problems import invalid_field
from delivery.http.route import People, PlainRequest, Repeats, Route, Routes

KindName = Literal["users", "contacts", "groups", "members", "supergroups", "ownerships"]


class ImportFileQuery(RequestModel, frozen=True):
    """The kind of the rows, and how the file is read."""

    kind: KindName
    encoding: Annotated[Encoding, Meta(description="of the file; default: found out by its words")] | UnsetType = UNSET
    sheet: Annotated[ShortText, Meta(description="of a workbook; default: the only one with values")] | UnsetType = (
        UNSET
    )


class ImportQuery(ImportFileQuery, frozen=True, kw_only=True):
    """Options of an import of a file."""

    dry_run: (
        Annotated[Literal["", "1", "true", "0", "false"], Meta(description="check only; the name alone means true")]
        | UnsetType
    ) = UNSET
    columns: (
        Annotated[
            str,
            Meta(
                max_length=8_000,
                description="what each column of the file is, in place of its header, such as `name,contacts.sms,-`; "
                "- is not read",
            ),
        ]
        | UnsetType
    ) = UNSET
    wrong_rows: (
        Annotated[
            Literal["refuse", "leave_out"],
            Meta(description="`leave_out`: the right rows are imported, and up to 1,000 wrong ones returned"),
        ]
        | UnsetType
    ) = UNSET

    mail_contact: (
        Annotated[
            Literal["", "1", "true", "0", "false"],
            Meta(
                description="of people: who has no contact of e-mail gets messages at the address with which it signs "
                "in; the name alone means true"
            ),
        ]
        | UnsetType
    ) = UNSET

    @property
    def only_checks(self) -> bool:
        return self.dry_run in ("", "1", "true")

    @property
    def mails_to_sign_in(self) -> bool:
        return self.mail_contact in ("", "1", "true")


class ImportResult(Struct):
    """The numbers of rows that created a record, changed one, or changed nothing. `dry_run`: they would have, and
    `changes` are the first of them; `more_changes`: the number of others. `header`, `wrong`: of a file whose wrong rows
    are left out. `not_mailed`: how many people of the file have an address to sign in and none for messages, absent if
    nobody.
    """

    created: int
    updated: int
    unchanged: int
    dry_run: bool
    changes: Sequence[RowChange]
    more_changes: int
    header: Sequence[str] | UnsetType = UNSET
    wrong: Sequence[WrongRow] | UnsetType = UNSET
    not_mailed: int | UnsetType = UNSET

    @classmethod
    def of(cls, result: Imported, *, dry_run: bool, leaves_out: bool) -> "ImportResult":
        more = result.created + result.updated - len(result.changes) if dry_run else 0
        counts, not_mailed = (result.created, result.updated, result.unchanged), result.not_mailed or UNSET
        found = cls(*counts, dry_run, result.changes, more, not_mailed=not_mailed)
        return replace(found, header=result.header, wrong=result.wrong) if leaves_out else found


class FileColumn(Struct):
    """A column of a file. `column`: of the import, None if the heading is none of them; `value`: of the first row."""

    heading: str
    column: str | None
    value: str


class FileColumns(Struct):
    """The columns of a file, and all that the import has."""

    columns: Sequence[FileColumn]
    names: Sequence[str]


CSV = "text/csv"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CSV_TYPES = frozenset({CSV, XLSX, "application/csv", "application/vnd.ms-excel", "application/octet-stream"})
"""The last ones are what browsers and HTTP clients send for a file."""
_WORKBOOK = b"PK\x03\x04"
"""The first bytes of an .xlsx file."""
_IN_MEMORY = 2**20
"""Bytes; a larger file goes to the disk."""
ImportRequest = Request[None, ImportQuery]


async def import_csv(request: ImportRequest) -> web.StreamResponse:
    """Import a file. A repeat with the same Idempotency-Key and the same file returns the first response."""
    check_content_type(request.http, CSV_TYPES)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        limit, timeout = request.options.import_limit, request.options.body_timeout
        content = await receive_file(request.http, limit, timeout, file)

        async def run(request: ImportRequest) -> Response:
            return await _import(request, file)

        if request.repeat is None:
            return (await run(request)).encode()
        repeat = Repeat(request.repeat.key, f"{request.repeat.fingerprint}{content}")
        return await respond_once(request, repeat, run)


async def _import(request: ImportRequest, file: IO[bytes]) -> Response:
    file = await _as_csv(file, request.query.sheet or "")
    kind, only_checks = FileKind(request.query.kind), request.query.only_checks
    leaves_out, columns = request.query.wrong_rows == "leave_out", request.query.columns or ""
    if request.query.mails_to_sign_in and kind is not FileKind.USERS:
        raise Invalid("MAIL_CONTACT_NOT_ALLOWED", "Only an import of people has addresses to sign in.", "mail_contact")
    register = await request.services.core.channels.current()
    result = await request.services.importing.run(
        request.tenant,
        kind,
        file,
        dry_run=only_checks,
        channels=register.names,
        encoding=_encoding(file, request.query),
        columns=columns.split(",") if columns else (),
        leave_out_wrong=leaves_out,
        mails_to_sign_in=request.query.mails_to_sign_in,
    )
    return Response(ImportResult.of(result, dry_run=only_checks, leaves_out=leaves_out))


def _encoding(file: IO[bytes], query: ImportFileQuery) -> str:
    return "utf-8" if isinstance(file, io.BytesIO) else query.encoding or ""


async def show_columns(request: Request[None, ImportFileQuery]) -> Response:
    """Return what the import takes each column of a file for; nothing is checked."""
    check_content_type(request.http, CSV_TYPES)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        await receive_file(request.http, request.options.import_limit, request.options.body_timeout, file)
        table = await _as_csv(file, request.query.sheet or "")
        own = await request.services.core.directory.own_fields.all(request.tenant)
        columns = columns_with(FileKind(request.query.kind), own)
        header, first = await asyncio.to_thread(read_beginning, table, columns, _encoding(table, request.query))
    register = await request.services.core.channels.current()
    contacts = [f"{CONTACTS}{name}" for name in register.names or ()] if CONTACTS in columns.families else []
    fields = [f"{FIELDS}{name}" for name in own] if FIELDS in columns.families else []
    found = zip_longest(header, columns.columns(header), first[: len(header)], fillvalue="")
    shown = [FileColumn(heading, column, value) for heading, column, value in found]
    return Response(FileColumns(shown, [*columns.required, *columns.optional, *contacts, *fields]))


async def _as_csv(file: IO[bytes], sheet: str) -> IO[bytes]:
    """Return the file from its beginning; of a workbook, a sheet as CSV, in which each row keeps its number. Raises
    ImportRefused.
    """
    file.seek(0)
    is_workbook = file.read(len(_WORKBOOK)) == _WORKBOOK
    file.seek(0)
    if not is_workbook:
        return file
    with tempfile.NamedTemporaryFile(suffix=".xlsx") as copy:
        await asyncio.to_thread(shutil.copyfileobj, file, copy)
        copy.flush()
        found = await read_sheet(Path(copy.name), sheet)
    if found.errors:
        raise ImportRefused(found.errors[:MOST_ERRORS], len(found.errors))
    return io.BytesIO(written_records(found.rows).encode())


async def show_progress(request: PlainRequest) -> Response:
    """Return how far the running import of the tenant is."""
    return Response(await request.services.importing.progress(request.tenant))


class DirectoryExportQuery(ExportQuery, frozen=True):
    """The form of the file, and the language of its columns, roles and languages; the import reads both."""

    language: Literal["ru", "en"] | UnsetType = UNSET


class SampleQuery(DirectoryExportQuery, frozen=True, kw_only=True):
    """The kind of the rows, and the form of the file."""

    kind: KindName


_SAMPLES: Mapping[str, Rows] = {
    "users": (
        ("name", "email", "role", "groups", "contacts.sms"),
        ("Петрова Анна Ивановна", "anna@example.org", "student", "8А", "+79991112201"),
        ("Сидоров Пётр", "petr@example.org", "trainer", "8А;8Б", "+79991112202"),
    ),
    "contacts": (("user", "channel", "address"),),
    "groups": (("id", "title"), ("8А", "8А класс"), ("8Б", "8Б класс")),
    "members": (("group", "user"), ("8А", "201"), ("8А", "202")),
    "supergroups": (("id", "title", "groups"), ("8 классы", "Все восьмые", "8А;8Б")),
    "ownerships": (
        ("user", "kind", "id"),
        ("202", "group", "8А"),
        ("202", "group", "8Б"),
        ("202", "supergroup", "8 классы"),
    ),
}
"""A table of each kind, as the import reads it; that of contacts goes on with one of each channel."""


async def show_sample(request: Request[None, SampleQuery]) -> web.StreamResponse:
    """Return a sample of a file, which the import reads."""
    query = request.query
    offered = (await request.services.core.channels.current()).names

    async def pages() -> AsyncIterator[Rows]:
        contacts = [
            ("201", name, one.samples[1]) for name, one in channels().items() if name in offered and 1 in one.samples
        ]
        yield (*_SAMPLES[query.kind], *(contacts if query.kind == "contacts" else ()))

    is_russian = query.language == "ru" and not query.format
    found = _in_russian(FileKind(query.kind), pages()) if is_russian else pages()
    return await respond_csv(request, f"sample-{query.kind}.csv", found, for_excel=query.for_excel)


ExportRequest = Request[None, DirectoryExportQuery]


async def export_directory(request: ExportRequest) -> web.StreamResponse:
    """Return all people, groups, … of the tenant."""
    name = request.part("kind")
    if name not in EXPORTED:
        raise invalid_field("kind", "WRONG_VALUE", f"Allowed values: {', '.join(EXPORTED)}.")
    pages = Exporting(request.services.core.directory).pages(request.tenant, FileKind(name))
    if request.query.language == "ru" and not request.query.format:
        pages = _in_russian(FileKind(name), pages)
    return await respond_csv(request, f"{name}.csv", pages, for_excel=request.query.for_excel)


async def _in_russian(kind: FileKind, pages: AsyncIterator[Rows]) -> AsyncIterator[Rows]:
    columns: Sequence[str] = ()
    async for rows in pages:
        columns = columns or rows[0]
        yield in_russian(kind, rows, columns)


ROUTES: Routes = (
    Route("POST", "/v1/import", "Import a CSV or .xlsx file into the directory, all of it or nothing", "manage",
          import_csv, 200, ImportResult, query=ImportQuery, repeats=Repeats.OWN, upload=CSV, people=People.BY_SCOPE),
    Route("POST", "/v1/import/columns", "What the import takes the columns of a file for", "manage", show_columns, 200,
          FileColumns, query=ImportFileQuery, upload=CSV, people=People.BY_SCOPE, repeats=Repeats.NONE),
    Route("GET", "/v1/import", "How far the running import is", "manage", show_progress, 200, ImportState,
          people=People.BY_SCOPE),
    Route("GET", "/v1/import/sample", "A sample of a file that the import reads, as CSV", "manage", show_sample, 200,
          CONTENT_TYPE, query=SampleQuery, people=People.BY_SCOPE),
    Route("GET", "/v1/export/{kind}", "Export a part of the directory as CSV, which the import reads again", "manage",
          export_directory, 200, CONTENT_TYPE, query=DirectoryExportQuery, people=People.BY_SCOPE),
)  # fmt: skip
