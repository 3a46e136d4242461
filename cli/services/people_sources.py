"""The sources of people: the arguments of `./ada sync`, also as a line of ADA_SYNCS, and what is read there.

That is a file, the newest file of a folder, or a URL, as CSV, .xlsx or a OneRoster archive; or a directory server
(LDAP). A file that is still being written is waited for.
"""

import asyncio
import io
import os
import re
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from cli.command import WRONG_USAGE, CommandFailed
from cli.files import read_input, read_text_input
from cli.settings.parsing import parse_duration
from core.directory.csv_cells import CONTACTS, FileKind, ImportRefused, joined
from core.directory.importing.csv_rows import CsvRow, read_rows, written_records
from core.directory.importing.kinds import COLUMNS, NAME_PARTS
from core.directory.importing.one_roster import is_one_roster, read_one_roster
from core.directory.syncs import SyncFault
from core.model.people import ACCOUNTS, is_source
from core.model.text.characters import counted
from core.orders.workbook import read_sheet
from delivery.http.options import Options

if TYPE_CHECKING:
    from providers.ldap_directory import LdapPerson

OWNS = "owns"
"""A column that only a source has: the groups to which the person may write."""
OF_SYNC = ("external_ids", "blocked")
_COLUMNS = COLUMNS[FileKind.USERS]
_COLUMNS = replace(_COLUMNS, optional=(*_COLUMNS.optional, OWNS))
_ARCHIVE = b"PK\x03\x04"
_SUFFIXES = (".csv", ".txt", ".xlsx", ".zip")
_HOST = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?(?=[/?#]|$)")
_SETTLED = 10.0
"""Seconds after its last change in which a file may still be written: a program pauses between two parts, too."""
_PAUSE = 2.0
_LOOKS = 30
_TIME_LIMIT = timedelta(minutes=5)
_MOST_SECRET = 4096
_MOST_MAPPING = 2**16


class SyncRefused(CommandFailed):
    """The source cannot be taken as it is; nothing was changed. `missing`, `of`: people that are not in it."""

    def __init__(self, fault: SyncFault, message: str, missing: int = 0, of: int = 0) -> None:
        super().__init__(message)
        self.fault, self.missing, self.of = fault, missing, of


@dataclass(frozen=True)
class SourceTable:
    """The people of a source. `titles`: group → its title, of a source that has groups of its own. `is_roster`: the
    source knows no administrators of Ada, so they stay what they are.
    """

    rows: Sequence[CsvRow]
    titles: Mapping[str, str]
    is_roster: bool = False


@dataclass(frozen=True)
class SourcePlace:
    """A place, and how it is read. `secret`, `mapping`: names of files, "" for none."""

    name: str
    secret: str = ""
    mapping: str = ""
    allow_private: bool = False

    @property
    def is_url(self) -> bool:
        return self.name.startswith(("http://", "https://"))

    @property
    def is_ldap(self) -> bool:
        return self.name.startswith(("ldap://", "ldaps://"))

    @property
    def shown(self) -> str:
        """The place without what may be secret: of a URL only the host, because a link to a shared file has its secret
        in the path.
        """
        if not self.is_url and not self.is_ldap:
            return self.name
        scheme, _, rest = self.name.partition("://")
        host = _HOST.match(rest)
        return f"{scheme}://{host[0] if host else ''}{'/…' if host is None or host[0] != rest else ''}"


class _LineParser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandFailed(message, WRONG_USAGE)


def declare_source(parser: ArgumentParser) -> None:
    parser.add_argument("source", help="a name for the source in small letters, such as 1c or isu")
    parser.add_argument(
        "place",
        metavar="FILE",
        help="CSV, .xlsx or a OneRoster archive with all its people (the column id has its ids); a folder, whose "
        "newest file is read; a URL; or ldaps://host",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would change; write nothing")
    parser.add_argument(
        "--every", metavar="TIME", help="go on, and repeat this after each TIME, such as 1h; Ctrl-C ends it"
    )
    parser.add_argument("--create-groups", action="store_true", help="create the groups that do not exist")
    parser.add_argument(
        "--many-leave",
        action="store_true",
        help="do it also if half of the people leave, or lose all groups or what a column had",
    )
    parser.add_argument(
        "--secret-file",
        metavar="FILE",
        default="",
        help="has the header Authorization that the URL wants, or the password for LDAP",
    )
    parser.add_argument(
        "--mapping", metavar="FILE", default="", help="of LDAP: what its attributes are (docs/import.md)"
    )
    parser.add_argument("--private", action="store_true", help="the URL may have an address of your own network")


def place_of(arguments: Namespace) -> tuple[SourcePlace, int]:
    """Return the place of the source, and every how many seconds it is read, 0 for once. Raises CommandFailed."""
    if not is_source(arguments.source):
        raise CommandFailed(
            f"the name of a source has small letters, digits and _, at most 27, and is not {ACCOUNTS}", WRONG_USAGE
        )
    place = SourcePlace(arguments.place, arguments.secret_file, arguments.mapping, arguments.private)
    return place, _seconds(arguments)


def _seconds(arguments: Namespace) -> int:
    try:
        every = round(parse_duration(arguments.every).total_seconds()) if arguments.every else 0
    except ValueError as fault:
        raise CommandFailed(f"--every is {arguments.every}, {fault}", WRONG_USAGE) from None
    if arguments.every and (every < 60 or arguments.dry_run):
        raise CommandFailed("--every is a minute at least, and has no --dry-run", WRONG_USAGE)
    return every


async def check(words: Sequence[str]) -> str:
    """Read a source as a run does, and change nothing; return what it has. `words`: a line of ADA_SYNCS. Raises
    CommandFailed.
    """
    parser = _LineParser(add_help=False, allow_abbrev=False)
    declare_source(parser)
    parser.add_argument("--mail-contact", action="store_true")  # of the import, which is not tried here
    arguments = parser.parse_args(words)
    place, _ = place_of(arguments)
    table = await read_source(place, arguments.source)
    return f"{place.shown} has {counted(len(table.rows), 'person', 'people')}"


async def read_source(place: SourcePlace, source: str) -> SourceTable:
    """Return the people of a source. Raises SyncRefused."""
    try:
        table = await _table_of(place, source)
    except ImportRefused as refusal:
        first = refusal.errors[0]
        message = f"row {first.row}: {first.message} ({first.code}); nothing was changed"
        raise SyncRefused("empty" if first.code == "CSV_EMPTY" else "unreadable", message) from None
    if wrong := [column for row in table.rows[:1] for column in OF_SYNC if column in row.cells]:
        raise CommandFailed(f"the file of a source has no column {wrong[0]}: the sync itself writes it", WRONG_USAGE)
    if nameless := [row.number for row in table.rows if not row.cells.get("id")]:
        raise SyncRefused("unreadable", f"row {nameless[0]} has no id; nothing was changed")
    return table


async def _table_of(place: SourcePlace, source: str) -> SourceTable:
    """Return the table of a place. Raises ImportRefused, SyncRefused."""
    if place.is_ldap:
        return await _from_ldap(place, source)
    content = await _downloaded(place) if place.is_url else await _read(place)
    if is_one_roster(content):
        roster = await asyncio.to_thread(read_one_roster, content, source)
        return SourceTable(roster.rows, roster.titles, is_roster=True)
    if content.startswith(_ARCHIVE):
        with tempfile.NamedTemporaryFile(suffix=".xlsx") as file:
            file.write(content)
            file.flush()
            sheet = await read_sheet(Path(file.name), "")
        if sheet.errors:
            raise ImportRefused(sheet.errors)
        content = written_records(sheet.rows).encode()
    table = await asyncio.to_thread(read_rows, io.BytesIO(content), _COLUMNS)
    if table.errors:
        raise ImportRefused(table.errors)
    return SourceTable(table.rows, {})


# files


async def _read(place: SourcePlace) -> bytes:
    try:
        return await asyncio.to_thread(_read_settled, Path(place.name))
    except FileNotFoundError:
        raise SyncRefused("not_found", f"{place.name} does not exist; nothing was changed") from None


def _read_settled(path: Path) -> bytes:
    """Return the content of a file, or of the newest file of a folder. Raises SyncRefused, CommandFailed."""
    path = _newest(path) if path.is_dir() else path
    if not path.is_file():  # a pipe, or nothing
        return read_input(str(path), Options().import_limit)
    settled = _settle(path)
    content = read_input(str(path), Options().import_limit)
    if _version(path.stat()) != settled:
        raise _unfinished(path)
    return content


def _newest(folder: Path) -> Path:
    """Return the file of a folder that was written last. Raises SyncRefused if there is none."""
    found = [one for one in folder.iterdir() if one.suffix.lower() in _SUFFIXES and not one.name.startswith((".", "~"))]
    if not found:
        endings = ", ".join(_SUFFIXES)
        raise SyncRefused("not_found", f"{folder} has no file that ends with {endings}; nothing was changed")
    return max(found, key=lambda one: (one.stat().st_mtime_ns, one.name))


_Version = tuple[int, int, int]


def _settle(path: Path) -> _Version:
    """Wait until a file has not changed for some seconds; return its version. Raises SyncRefused if it does not end."""
    known, unchanged = _version(path.stat()), 0.0
    for _ in range(_LOOKS):
        if unchanged >= _SETTLED or time.time() - path.stat().st_mtime > _SETTLED:
            return known
        time.sleep(_PAUSE)
        now = _version(path.stat())
        known, unchanged = now, unchanged + _PAUSE if now == known else 0.0
    raise _unfinished(path)


def _version(stat: os.stat_result) -> _Version:
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def _unfinished(path: Path) -> SyncRefused:
    return SyncRefused("unfinished", f"{path} is still being written; nothing was changed")


# addresses


async def _downloaded(place: SourcePlace) -> bytes:
    """Return what a URL answers: no redirect is followed, and a private address needs `allow_private`."""
    from providers import web_request  # it imports aiohttp, which a sync of a file does not need

    if "@" in urlsplit(place.name).netloc:
        raise CommandFailed("a URL has no user and password: --secret-file names a file with the header", WRONG_USAGE)
    headers = {"Authorization": read_text_input(place.secret, _MOST_SECRET).strip()} if place.secret else {}
    request = web_request.WebRequest("GET", place.name, headers, time_limit=_TIME_LIMIT)
    try:
        raw = await web_request.fetch(request, allow_private=place.allow_private, most=Options().import_limit)
    except web_request.WebFault as fault:
        hint = "" if place.allow_private or fault.may_change else "; --private allows an address of your own network"
        raise SyncRefused("failed", f"{place.shown}: {fault}{hint}; nothing was changed") from None
    if raw.status != 200:
        fault_of: SyncFault = "not_found" if raw.status in (404, 410) else "failed"
        raise SyncRefused(fault_of, f"{place.shown}: the server answered {raw.status}; nothing was changed")
    return raw.body


async def _from_ldap(place: SourcePlace, source: str) -> SourceTable:
    """Return the people of a directory server. Its groups are `SOURCE-<id>` here."""
    try:
        from providers import ldap_directory  # its library is an extra
    except ImportError:
        raise CommandFailed("LDAP needs a library: pip install 'ada[ldap]'", WRONG_USAGE) from None

    if not place.mapping or not place.secret:
        raise CommandFailed("LDAP needs --mapping and --secret-file", WRONG_USAGE)
    password = read_text_input(place.secret, _MOST_SECRET).strip()
    try:
        mapping = ldap_directory.decode_mapping(read_text_input(place.mapping, _MOST_MAPPING))
        _check_columns(mapping.columns)
        found = await asyncio.to_thread(ldap_directory.read_people, place.name, password, mapping)
    except ldap_directory.LdapFault as fault:
        raise SyncRefused("failed", f"{place.shown}: {fault}; nothing was changed") from None
    rows = [_row_of(number, one, source) for number, one in enumerate(found.people, 2)]
    return SourceTable(rows, {f"{source}-{group}": title for group, title in found.titles.items()}, is_roster=True)


def _check_columns(columns: Collection[str]) -> None:
    """Check the columns of a mapping. Raises SyncRefused."""
    for one in columns:
        if _COLUMNS.column(one) != one or one in ("id", "groups", OWNS, *OF_SYNC, *NAME_PARTS):
            raise SyncRefused("unreadable", f"the mapping has a column {one!r}, which the import cannot have")


def _row_of(number: int, person: "LdapPerson", source: str) -> CsvRow:
    cells = {column: _cell_of(column, values) for column, values in person.columns.items()}
    groups, owns = (joined(f"{source}-{one}" for one in some) for some in (person.groups, person.owns))
    return CsvRow(number, {"id": person.id, **cells, "groups": groups, OWNS: owns}, {})


def _cell_of(column: str, values: Sequence[str]) -> str:
    """Return the cell of a column: all addresses of a channel, else the first value."""
    return joined(values) if column.startswith(CONTACTS) else next(iter(values), "")
