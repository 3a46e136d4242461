"""Reads an archive of OneRoster 1.1 or 1.2 (CSV, all of its people) as rows of the import. Pure.

    users.csv, roles.csv → people and their roles; never the role admin
    classes.csv → groups, `SOURCE-<class>` and `SOURCE-<class>-guardians`, with their titles
    enrollments.csv → students are members of the group, teachers own both groups
    agents of a student (`agentSourcedIds`) → its guardians, and members of the group of guardians

What is `tobedeleted`, and an enrollment that has ended or not begun, does not count.
"""

import csv
import io
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime

from msgspec import Struct

from core.directory.csv_cells import CONTACTS, ImportRefused, RowError, joined
from core.directory.importing.csv_rows import MOST_ROWS, CsvRow
from core.model.contacts.addresses import PHONE_NUMBER, channel_of_form
from core.model.text.characters import with_plain_spaces

_USERS, _CLASSES, _ENROLLMENTS = "users.csv", "classes.csv", "enrollments.csv"
_OPTIONAL = ("roles.csv", "manifest.csv")
_MOST_BYTES = 2**27
_ROLES: Mapping[str, str] = {
    "student": "student",
    "teacher": "trainer",
    **dict.fromkeys(
        ("administrator", "aide", "counselor", "principal", "proctor", "siteAdministrator", "systemAdministrator",
         "districtAdministrator"),
        "staff",
    ),
}  # fmt: skip
_CYRILLIC = re.compile("[А-Яа-яЁё]")

_Line = Mapping[str, str]


class Roster(Struct, frozen=True):
    """`rows`: people, with the columns groups and owns. `titles`: group → title."""

    rows: Sequence[CsvRow]
    titles: Mapping[str, str]


def is_one_roster(content: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _USERS in archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError):
        return False


def read_one_roster(content: bytes, source: str, today: date | None = None) -> Roster:
    """Return the people and groups of an archive. Raises ImportRefused ONE_ROSTER_UNREADABLE."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = {name: _lines(archive, name) for name in (_USERS, _CLASSES, _ENROLLMENTS, *_OPTIONAL)}
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, OSError, csv.Error, RuntimeError) as fault:
        raise _refused(f"The archive cannot be read: {fault}.") from None
    for line in files["manifest.csv"]:
        if line.get("propertyName", "").startswith("file.") and line.get("value", "").strip() == "delta":
            raise _refused(f"{line['propertyName']} has changes only (delta); the export must have all (bulk).")
    return _Reading(source, files, today or datetime.now(UTC).date()).roster()


def _refused(message: str) -> ImportRefused:
    return ImportRefused([RowError(1, "", "ONE_ROSTER_UNREADABLE", message)])


def _lines(archive: zipfile.ZipFile, name: str) -> list[_Line]:
    """Return the lines of a file that are active. A file that is not there is empty if it is optional."""
    if name in _OPTIONAL and name not in archive.namelist():
        return []
    if archive.getinfo(name).file_size > _MOST_BYTES:
        raise ValueError(f"{name} is too large")
    with archive.open(name) as file:
        text = file.read(_MOST_BYTES).decode("utf-8-sig")
    lines = list(csv.DictReader(io.StringIO(text, newline=""), restval="", strict=True))
    if len(lines) > 10 * MOST_ROWS or any(None in line for line in lines):
        raise ValueError(f"{name} has more cells than its header, or too many rows")
    return [line for line in lines if line.get("status", "").strip() != "tobedeleted"]


def _listed(cell: str) -> list[str]:
    return [one for part in cell.split(",") if (one := part.strip())]


class _Reading:
    """The files of an archive, by what they are read for."""

    def __init__(self, source: str, files: Mapping[str, Sequence[_Line]], today: date) -> None:
        self._source, self._today = source, today
        self._users, self._classes = files[_USERS], files[_CLASSES]
        self._known = {line["sourcedId"].strip() for line in self._users}
        self._roles: dict[str, list[str]] = defaultdict(list)
        for line in files["roles.csv"]:
            primary = line.get("roleType", "").strip() == "primary"
            self._roles[line["userSourcedId"]].insert(0 if primary else MOST_ROWS, line.get("role", "").strip())
        self._groups: dict[str, set[str]] = defaultdict(set)
        self._owns: dict[str, set[str]] = defaultdict(set)
        self._enrolled = [line for line in files[_ENROLLMENTS] if self._is_current(line)]
        learning = {
            line["userSourcedId"].strip() for line in self._enrolled if line.get("role", "").strip() == "student"
        }
        self._agents = {
            own: self._agents_of(line) if own in learning or "student" in self._roles_of(line) else []
            for line in self._users
            if (own := line["sourcedId"].strip())
        }

    def roster(self) -> Roster:
        known = {line["sourcedId"].strip() for line in self._classes}
        for line in self._enrolled:
            if line["classSourcedId"].strip() in known:
                self._enroll(line)
        rows = [self._row(number, line) for number, line in enumerate(self._users, 2)]
        return Roster(rows, dict(self._titles()))

    def _is_current(self, line: _Line) -> bool:
        begin, end = line.get("beginDate", "").strip()[:10], line.get("endDate", "").strip()[:10]
        today = self._today.isoformat()
        return (not begin or begin <= today) and (not end or today <= end)

    def _enroll(self, line: _Line) -> None:
        group = f"{self._source}-{line['classSourcedId'].strip()}"
        user, role = line["userSourcedId"].strip(), line.get("role", "").strip()
        if role == "student":
            self._groups[user].add(group)
            for agent in self._agents.get(user, ()):
                self._groups[agent].add(f"{group}-guardians")
        elif role == "teacher":
            self._owns[user] |= {group, f"{group}-guardians"}

    def _roles_of(self, line: _Line) -> Sequence[str]:
        return self._roles.get(line["sourcedId"].strip()) or [line.get("role", "").strip()]

    def _agents_of(self, line: _Line) -> Sequence[str]:
        """Return the guardians of a student: guardians may name their children as agents."""
        own = line["sourcedId"].strip()
        return [one for one in _listed(line.get("agentSourcedIds", "")) if one in self._known and one != own]

    def _titles(self) -> Iterator[tuple[str, str]]:
        used = set().union(*self._groups.values(), *self._owns.values())
        for line in self._classes:
            group, title = f"{self._source}-{line['sourcedId'].strip()}", with_plain_spaces(line.get("title", ""))
            guardians = "родители" if _CYRILLIC.search(title) else "guardians"
            yield group, title
            if f"{group}-guardians" in used:
                yield f"{group}-guardians", f"{title}: {guardians}"

    def _row(self, number: int, line: _Line) -> CsvRow:
        own = line["sourcedId"].strip()
        given = self._roles_of(line)
        names = (line.get(part, "").strip() for part in ("familyName", "givenName", "middleName"))
        cells = {
            "id": own,
            "name": with_plain_spaces(" ".join(name for name in names if name)),
            "email": line.get("email", "").strip(),
            f"{CONTACTS}{channel_of_form(PHONE_NUMBER)}": (line.get("sms") or line.get("phone") or "").strip(),
            "role": next((_ROLES[one] for one in given if one in _ROLES), ""),
            "groups": joined(sorted(self._groups[own])),
            "guardians": joined(self._agents.get(own, ())),
            "owns": joined(sorted(self._owns[own])),
        }
        return CsvRow(number, cells, {})
