"""The verb sync: keeps the people of one source, such as 1c, as its file says, over HTTP and with the import.

A person of the source has the external id `SOURCE:ID`; one that has left is blocked and has `SOURCE-left:ID`, by which
it is known when it comes back. A file that is empty, or without half of the people, changes nothing.
"""

import io
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.client.http_client import ClientUpload, HttpClient, items, quoted
from cli.client.verbs import over_http, print_result
from cli.command import FAILURE, SUCCESS, WRONG_USAGE, Command, CommandFailed
from cli.commands.directory.imports import create_groups, declare_mail_contact, format_import, print_errors
from cli.files import read_input
from core.directory.csv_cells import CONTACTS, FileKind, escaped, joined, listed
from core.directory.importing.csv_rows import CsvRow, read_rows, written_records
from core.directory.importing.errors import ImportRefused
from core.directory.importing.kinds import COLUMNS
from core.model.text.characters import counted
from core.orders.tables.workbook import read_sheet
from core.sessions.outside_accounts import ACCOUNTS
from delivery.http.options import Options

_WORKBOOK = b"PK\x03\x04"
_SOURCE = re.compile(r"[a-z0-9][a-z0-9_]{0,26}")
_OF_SYNC = ("external_ids", "blocked")

Item = Mapping[str, Any]


@dataclass(frozen=True)
class SyncSource:
    """The people of a source in the directory. `known`: by their ids in the source; `left`: those of them that have
    left it; `others`: people without an id of this source, by their e-mail addresses.
    """

    name: str
    known: Mapping[str, Item]
    left: frozenset[str]
    others: Mapping[str, Item]

    @classmethod
    def of(cls, name: str, people: Sequence[Item]) -> "SyncSource":
        known: dict[str, Item] = {}
        left, others = set[str](), {person["email"]: person for person in people if person["email"]}
        for person in people:
            for one in person.get("external_ids", ()):
                system, _, own = one.partition(":")
                if system in (name, f"{name}-left"):
                    known[own] = person
                    others.pop(person["email"], None)
                    left |= {own} if system != name else set()
        return cls(name, known, frozenset(left), others)

    @property
    def present(self) -> set[str]:
        return self.known.keys() - self.left

    def person_of(self, row: CsvRow) -> Item:
        """Return the person of a row as it is now, also one that was here before the source; {} for a new one."""
        return self.known.get(row.cells["id"]) or self.others.get(row.cells.get("email", "").lower(), {})


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("source", help="a name for the source in small letters, such as 1c or isu")
    parser.add_argument("file", metavar="FILE", help="CSV or .xlsx with all its people; the column id has its ids")
    parser.add_argument("--dry-run", action="store_true", help="show what would change; write nothing")
    parser.add_argument("--create-groups", action="store_true", help="create the groups that do not exist")
    parser.add_argument(
        "--many-leave", action="store_true", help="block the missing ones also if they are half of the people"
    )
    declare_mail_contact(parser)


async def run(api: HttpClient, arguments: Namespace) -> int:
    """Exit code 1 if the file is refused: then nothing was written."""
    if not _SOURCE.fullmatch(arguments.source):
        raise CommandFailed("the name of a source has small letters, digits and _, at most 27", WRONG_USAGE)
    if arguments.source == ACCOUNTS:
        raise CommandFailed(
            f"{ACCOUNTS} names the accounts with which people sign in, no source of people", WRONG_USAGE
        )
    rows = await _rows_of(arguments.file)
    source = SyncSource.of(arguments.source, [one async for one in items(api, "/v1/users", "users", {})])
    missing = missing_of(source, rows, may_be_many=arguments.many_leave)
    query = {"kind": "users", **({"dry_run": "1"} if arguments.dry_run else {})}
    query |= {"mail_contact": "1"} if arguments.mail_contact else {}
    for table in [table_of(source, rows), *([table_of_left(source, missing)] if missing else [])]:
        upload = ClientUpload(table.encode(), "text/csv")
        if arguments.create_groups and not arguments.dry_run:
            await create_groups(api, upload, query)
        result = await api.upload("/v1/import", upload, query)
        if "errors" in result:
            print_errors(result, arguments.json)
            return FAILURE
        print_result(arguments, result, format_import(result))
    if missing:
        print_result(arguments, {"left": missing}, f"{counted(len(missing), 'person')} left: {', '.join(missing[:20])}")
    await _leave_groups(api, arguments, source, rows)
    return SUCCESS


async def _rows_of(name: str) -> Sequence[CsvRow]:
    """Return the rows of the file. Raises CommandFailed."""
    content = read_input(name, Options().import_limit)
    try:
        if content.startswith(_WORKBOOK):
            sheet = await read_sheet(Path(name), "")
            if sheet.errors:
                raise ImportRefused(sheet.errors)
            content = written_records(sheet.rows).encode()
        table = read_rows(io.BytesIO(content), COLUMNS[FileKind.USERS])
        if table.errors:
            raise ImportRefused(table.errors)
    except ImportRefused as refusal:
        first = refusal.errors[0]
        raise CommandFailed(f"row {first.row}: {first.message} ({first.code}); nothing was changed") from None
    if wrong := [column for column in _OF_SYNC if column in table.header.columns]:
        raise CommandFailed(f"the file of a source has no column {wrong[0]}: the sync itself writes it", WRONG_USAGE)
    if nameless := [row.number for row in table.rows if not row.cells.get("id")]:
        raise CommandFailed(f"row {nameless[0]} has no id; nothing was changed")
    return table.rows


def missing_of(source: SyncSource, rows: Sequence[CsvRow], *, may_be_many: bool) -> list[str]:
    """Return the ids of the people that are no longer in the file. Raises CommandFailed if the file is empty, or has so
    few people that it is rather a broken one.
    """
    if not rows:
        raise CommandFailed("the file has no people; nothing was changed")
    missing = sorted(source.present - {row.cells["id"] for row in rows})
    if len(missing) > 1 and len(missing) * 2 >= len(source.present) and not may_be_many:
        raise CommandFailed(
            f"{len(missing)} of {len(source.present)} people of {source.name} are not in the file, so it is taken for "
            "a broken one; nothing was changed. If they have left, repeat this with --many-leave"
        )
    return missing


def table_of(source: SyncSource, rows: Sequence[CsvRow]) -> str:
    """Return the table that the import gets: with the ids of the people here, in the rows of the file."""
    columns = list(rows[0].cells)
    records = [(1, ["id", *(one for one in columns if one != "id"), *_OF_SYNC])]
    records += [(row.number, [escaped(cell) for cell in _cells(source, row, columns)]) for row in rows]
    return written_records(records)


def _cells(source: SyncSource, row: CsvRow, columns: Sequence[str]) -> Iterator[str]:
    own = row.cells["id"]
    person = source.person_of(row)
    yield str(person.get("id", f"{source.name}-{own}"))
    for column in columns:
        if column.startswith(CONTACTS):  # beside those that the person has linked
            known = person.get("contacts", {}).get(column.removeprefix(CONTACTS), ())
            yield joined(dict.fromkeys([*known, *listed(row.cells[column])]))
        elif column != "id":
            yield row.cells[column]
    yield joined([*_others(source, person, own), f"{source.name}:{own}"])
    yield "true" if person.get("blocked") and own not in source.left else "false"


def table_of_left(source: SyncSource, missing: Sequence[str]) -> str:
    """Return the table by which those are blocked that have left."""
    records = [(1, ["id", *_OF_SYNC])]
    for number, own in enumerate(missing, 2):
        person = source.known[own]
        external_ids = joined([*_others(source, person, own), f"{source.name}-left:{own}"])
        records.append((number, [escaped(str(person["id"])), escaped(external_ids), "true"]))
    return written_records(records)


def _others(source: SyncSource, person: Item, own: str) -> list[str]:
    """Return the external ids of a person without that of this source."""
    of_source = (f"{source.name}:{own}", f"{source.name}-left:{own}")
    return [one for one in person.get("external_ids", ()) if one not in of_source]


async def _leave_groups(api: HttpClient, arguments: Namespace, source: SyncSource, rows: Sequence[CsvRow]) -> None:
    """Take people of the source out of the groups of the file in which it no longer has them."""
    wanted = {row.cells["id"]: set(listed(row.cells["groups"])) for row in rows if "groups" in row.cells}
    owns = {str(person["id"]): own for own, person in source.known.items()}
    for group in sorted(set().union(*wanted.values())) if wanted else ():
        path = f"/v1/groups/{quoted(group)}/members"
        for member in [one async for one in items(api, path, "users", {})]:
            own = owns.get(str(member["id"]))
            if own is None or group in wanted.get(own, ()):
                continue
            if not arguments.dry_run:
                await api.call("DELETE", f"{path}/{quoted(str(member['id']))}")
            shown = {"left_group": group, "id": member["id"]}
            print_result(arguments, shown, f"{member['id']} leaves the group {group}")


COMMANDS: Mapping[str, Command] = {"sync": Command(declare, over_http(run))}
