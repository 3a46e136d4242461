"""The people of one source beside those of the directory: who is who, who has left, the tables for the import. Pure.

A person of the source has the external id `SOURCE:ID`; one that has left has `SOURCE-left:ID` (`SOURCE-gone:ID` if
somebody had blocked it before), by which it is known when it comes back; under another id it is known by its e-mail
address. Of a person that several sources have, the first one owns the columns that it names.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from cli.services.people_sources import OF_SYNC, OWNS, SourceTable, SyncRefused
from core.directory.csv_cells import CONTACTS, FIELDS, escaped, joined, listed
from core.directory.importing.csv_rows import CsvRow, written_records
from core.directory.importing.kinds import GUARDIANS
from core.directory.syncs import is_in_another, owner_of, systems_of
from core.model.people import canonical_email

_LEFT = "-left"
_GONE = "-gone"
"""Of a person that has left, and that somebody had blocked before: coming back does not end that block."""
_SHARED = ("name", "email", "role", "locale", "opt_out", *GUARDIANS)
_EMPTIED_FREELY = 5
"""People that may lose what the source has said of them, however few it has."""
_ADMIN = "admin"

Item = Mapping[str, Any]
Relations = Mapping[str, set[str]]
"""Person → groups."""


@dataclass(frozen=True)
class SyncSource:
    """The people of a source in the directory. `known`: by their ids in the source; `left`: those of them that have
    left it, `barred`: of those, who had been blocked before; `others`: people without an id of this source, by their
    e-mail addresses. `columns`: source → the columns that it names, of all sources. `former`: id → the one that the
    source gave the person before. `groups`: source → the groups that it names, of all sources.
    """

    name: str
    known: Mapping[str, Item]
    left: frozenset[str]
    others: Mapping[str, Item]
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    barred: frozenset[str] = frozenset()
    former: Mapping[str, str] = field(default_factory=dict)
    groups: Relations = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        people: Sequence[Item],
        rows: Sequence[CsvRow],
        columns: Mapping[str, Sequence[str]],
        groups: Relations,
    ) -> "SyncSource":
        """Return the source whose file has these rows."""
        known: dict[str, Item] = {}
        left, barred = set[str](), set[str]()
        others = {person["email"]: person for person in people if person["email"]}
        for person in people:
            for one in person.get("external_ids", ()):
                system, _, own = one.partition(":")
                if system in (name, f"{name}{_LEFT}", f"{name}{_GONE}"):
                    known[own] = person
                    others.pop(person["email"], None)
                    left |= {own} if system != name else set()
                    barred |= {own} if system.endswith(_GONE) else set()
        former = _former_ids(known, rows)
        for own, before in former.items():
            known[own] = known.pop(before)
        left, barred = (some | {own for own, before in former.items() if before in some} for some in (left, barred))
        return cls(name, known, frozenset(left & known.keys()), others, columns, frozenset(barred), former, groups)

    @property
    def present(self) -> set[str]:
        return self.known.keys() - self.left

    def person_of(self, row: CsvRow) -> Item:
        """Return the person of a row as it is now, also one that was here before the source; {} for a new one."""
        return self.known.get(row.cells["id"]) or self.others.get(_email_of(row), {})

    def id_of(self, row: CsvRow) -> str:
        """Return the id that the person of a row has in the directory, or will have."""
        return str(self.person_of(row).get("id", f"{self.name}-{row.cells['id']}"))

    def owner_of(self, person: Item, column: str) -> str:
        """Return the source that says what stands in a column of a person: the first that has the person and names the
        column.
        """
        return owner_of(person.get("external_ids", ()), column, self.name, self.columns)

    def puts_into(self, person: Item, group: str) -> bool:
        """Return whether this source says if a person is in a group or owns it: the first one that has the person and
        names the group.
        """
        systems = systems_of(person.get("external_ids", ()))
        first = next((one for one in systems if one == self.name or group in self.groups.get(one, ())), self.name)
        return first == self.name

    def put_into(self, members: Relations) -> Relations:
        """Return those groups of people of this source about which it says if they are in it."""
        return {own: {one for one in groups if self.puts_into(self.known[own], one)} for own, groups in members.items()}

    def is_in_another(self, person: Item) -> bool:
        """Return whether another source has this person."""
        return is_in_another(person.get("external_ids", ()), self.name, self.columns.keys())

    def external_ids(self, person: Item, own: str, *, has_left: bool) -> str:
        """Return the external ids of a person, that of this source in its place among them."""
        ids = (own, self.former.get(own, own))
        mine = {f"{self.name}{end}:{one}" for end in ("", _LEFT, _GONE) for one in ids}
        leaves = _GONE if self.stays_blocked(person, own) else _LEFT
        new = f"{self.name}{leaves if has_left else ''}:{own}"
        given = person.get("external_ids", ())
        return joined(dict.fromkeys([new if one in mine else one for one in given] + [new]))

    def stays_blocked(self, person: Item, own: str) -> bool:
        """Return whether a person has a block that this source has not made."""
        return bool(person.get("blocked")) and (own not in self.left or own in self.barred)


def _former_ids(known: Mapping[str, Item], rows: Sequence[CsvRow]) -> dict[str, str]:
    """Return new id → id that the source gave the same person before: it has the e-mail address, and its id is no
    longer in the file. An account that was deleted and created again has a new one.
    """
    ids = {row.cells["id"] for row in rows}
    gone = {one["email"]: own for own, one in known.items() if one["email"] and own not in ids}
    found: dict[str, str] = {}
    for row in rows:
        if row.cells["id"] not in known and (before := gone.pop(_email_of(row), None)):
            found[row.cells["id"]] = before
    return found


def _email_of(row: CsvRow) -> str:
    return canonical_email(row.cells.get("email", ""))


def missing_of(source: SyncSource, rows: Sequence[CsvRow], *, may_be_many: bool) -> list[str]:
    """Return the ids of the people that are no longer in the source. Raises SyncRefused if it is empty, or has so
    few people that it is rather a broken one.
    """
    if not rows:
        raise SyncRefused("empty", "the file has no people; nothing was changed", 0, len(source.present))
    missing = sorted(source.present - {row.cells["id"] for row in rows})
    if len(missing) > 1 and len(missing) * 2 >= len(source.present) and not may_be_many:
        message = (
            f"{len(missing)} of {len(source.present)} people of {source.name} are not in the file, so it is taken for "
            "a broken one; nothing was changed. If they have left, repeat this with --many-leave"
        )
        raise SyncRefused("halved", message, len(missing), len(source.present))
    return missing


def check_cells(source: SyncSource, table: SourceTable) -> None:
    """Check that no column of the source has become empty for half of those who had something in it. Raises
    SyncRefused.
    """
    for column in table.rows[0].cells:
        filled = [row for row in table.rows if _now(source.person_of(row), column)]
        check_emptied(column, sum(not _cell(source, table, row, column, []) for row in filled), len(filled))


def check_emptied(what: str, emptied: int, filled: int) -> None:
    """Check that a run takes away something from fewer than half of the people who have it. Raises SyncRefused."""
    if emptied > _EMPTIED_FREELY and emptied * 2 >= filled:
        message = (
            f"{emptied} of {filled} people would lose all of {what!r}, so the source is taken for a broken one; "
            "nothing was changed. If this is meant, repeat this with --many-leave"
        )
        raise SyncRefused("halved", message)


def check_relations(what: str, before: Relations, wanted: Relations) -> None:
    """Check that a run does not take all groups away from half of the people who have some. Raises SyncRefused."""
    had = [person for person, groups in before.items() if groups and person in wanted]
    check_emptied(what, sum(not wanted[person] for person in had), len(had))


def table_of(source: SyncSource, table: SourceTable) -> tuple[str, list[str]]:
    """Return the table that the import gets, with the ids of the people here, in the rows of the file; and what another
    source has said before: `<person> <column>`.
    """
    columns = [one for one in table.rows[0].cells if one not in ("id", OWNS)]
    records = [(1, ["id", *columns, *OF_SYNC])]
    ids = {row.cells["id"]: source.id_of(row) for row in table.rows} if {*GUARDIANS} & {*columns} else {}
    differing: list[str] = []
    for row in table.rows:
        cells = [
            source.id_of(row),
            *(_cell(source, table, _with_own_guardians(row, ids), one, differing) for one in columns),
        ]
        person, own = source.person_of(row), row.cells["id"]
        cells.append(source.external_ids(person, own, has_left=False))
        cells.append("true" if source.stays_blocked(person, own) else "false")
        records.append((row.number, [escaped(cell) for cell in cells]))
    return written_records(records), differing


def with_groups(table: SourceTable, is_kept: Callable[[CsvRow, str], bool]) -> SourceTable:
    """Return a table whose rows name only the groups that are kept."""
    if "groups" not in table.rows[0].cells:
        return table
    kept = [joined(one for one in listed(row.cells["groups"]) if is_kept(row, one)) for row in table.rows]
    rows = [replace(row, cells={**row.cells, "groups": cell}) for row, cell in zip(table.rows, kept, strict=True)]
    return SourceTable(rows, table.titles, table.is_roster)


def groups_of_others(source: SyncSource, members: Relations, wanted: Relations) -> list[str]:
    """Return the people about whom another source says something else: `<person> groups`."""
    differing = [
        str(source.known[own]["id"])
        for own in sorted(source.known.keys() & wanted.keys())
        if any(not source.puts_into(source.known[own], one) for one in members.get(own, set()) ^ wanted[own])
    ]
    return [f"{person} groups" for person in differing]


def _with_own_guardians(row: CsvRow, ids: Mapping[str, str]) -> CsvRow:
    """Return a row whose guardians have the ids of the directory in place of those of the source (`ids`)."""
    named = {one: joined(ids.get(own, own) for own in listed(row.cells[one])) for one in GUARDIANS if one in row.cells}
    return replace(row, cells={**row.cells, **named}) if named else row


def _cell(source: SyncSource, table: SourceTable, row: CsvRow, column: str, differing: list[str]) -> str:
    person, cell = source.person_of(row), row.cells[column]
    if column.startswith(CONTACTS):  # beside those that the person has linked
        known = person.get("contacts", {}).get(column.removeprefix(CONTACTS), ())
        return joined(dict.fromkeys([*known, *listed(cell)]))
    now = _now(person, column)
    if column == "role" and now == _ADMIN and table.is_roster:
        return now
    if now is None or source.owner_of(person, column) == source.name:
        return cell
    if now != cell:
        differing.append(f"{person['id']} {column}")
    return now


def _now(person: Item, column: str) -> str | None:
    """Return what a person has in a column that two sources may name; None for other columns and a new person."""
    if column.startswith(FIELDS) and person:
        return str(person.get("fields", {}).get(column.removeprefix(FIELDS), ""))
    if column not in _SHARED or not person:
        return None
    value = person.get(column)
    return joined(value) if isinstance(value, list) else str(value or "")


def table_of_left(source: SyncSource, missing: Sequence[str]) -> str:
    """Return the table by which those are blocked that have left, unless another source has them."""
    records = [(1, ["id", *OF_SYNC])]
    for number, own in enumerate(missing, 2):
        person = source.known[own]
        external_ids = source.external_ids(person, own, has_left=True)
        blocked = person.get("blocked", False) if source.is_in_another(person) else True
        records.append((number, [escaped(str(person["id"])), escaped(external_ids), "true" if blocked else "false"]))
    return written_records(records)


def groups_of(rows: Sequence[CsvRow], column: str) -> dict[str, set[str]]:
    """Return id → groups that the rows name in a column; of rows that have the column."""
    return {row.cells["id"]: set(listed(row.cells[column])) for row in rows if column in row.cells}


def owned(source: SyncSource, rows: Sequence[CsvRow]) -> Iterator[tuple[str, set[str]]]:
    """Emit people of the directory and the groups that the source lets them write to; of rows that say it."""
    for row in rows:
        if OWNS in row.cells:
            person, groups = source.person_of(row), listed(row.cells[OWNS])
            yield source.id_of(row), {one for one in groups if source.puts_into(person, one)}
