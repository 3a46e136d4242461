"""A made-up university: its people, overlapping groups and owners, as CSV files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

GROUP_SIZE = 25
OVERLAP = 5
"""Every fifth student of a group is in the next group too."""
WITHOUT_CONTACT = 10
"""Every tenth student has no contact."""

TEACHER, SMS_TEACHER, NIGHT_TEACHER = 90_001, 90_002, 90_003
TEACHERS: Mapping[int, str] = {
    TEACHER: "Анна Петрова",
    SMS_TEACHER: "Борис Иванов",
    NIGHT_TEACHER: "Вера Смирнова",
}
EVERYONE = "everyone"


@dataclass(frozen=True, slots=True)
class University:
    """`count` students, a multiple of 25, numbered from 1, in groups of 25."""

    count: int

    @property
    def groups(self) -> Sequence[str]:
        return [f"IVT-{number}" for number in range(1, self.count // GROUP_SIZE + 1)]

    def groups_of(self, student: int) -> Sequence[str]:
        number = (student - 1) // GROUP_SIZE
        further = [self.groups[(number + 1) % len(self.groups)]] if student % OVERLAP == 0 else []
        return [self.groups[number], *further]

    def members(self, *groups: str) -> set[int]:
        """The students of any of these groups."""
        return {number for number in range(1, self.count + 1) if not set(groups).isdisjoint(self.groups_of(number))}

    def files(self) -> Mapping[str, str]:
        """Kind of rows → CSV file, in the order of the import."""
        students = range(1, self.count + 1)
        return {
            "users": csv_file(_USER_COLUMNS, [*map(student_row, students), *map(teacher_row, TEACHERS)]),
            "groups": csv_file(["id", "title"], ([group, title(group)] for group in self.groups)),
            "members": csv_file(
                ["group", "user"], ([group, str(one)] for one in students for group in self.groups_of(one))
            ),
            "supergroups": csv_file(["id", "groups"], [[EVERYONE, ";".join(self.groups)]]),
            "ownerships": csv_file(
                ["user", "kind", "id"], ([str(one), "group", group] for one in TEACHERS for group in self.groups[:4])
            ),
        }


_USER_COLUMNS = ["id", "name", "email", "role", "locale", "contacts.telegram", "contacts.vk", "contacts.sms"]


def contacts(student: int) -> Mapping[str, str]:
    """Channel → address: one in ten has none, the others one or two."""
    if student % WITHOUT_CONTACT == 0:
        return {}
    vk = {"vk": str(200_000 + student)} if student % 3 == 1 else {}
    telegram = {"telegram": str(100_000 + student)} if student % 3 == 2 else {}
    sms = {"sms": f"+7999{student:07}"} if student % 3 == 0 or student % 2 == 0 else {}
    return {**telegram, **vk, **sms}


def reachable(students: Iterable[int]) -> set[int]:
    """Those who have a contact."""
    return {student for student in students if contacts(student)}


def student_row(number: int) -> Sequence[str]:
    of = contacts(number)
    address = [of.get(channel, "") for channel in ("telegram", "vk", "sms")]
    return [str(number), name(number), f"s{number}@example.org", "student", "", *address]


def teacher_row(number: int) -> Sequence[str]:
    locale = "ru" if number == SMS_TEACHER else "en"
    return [str(number), TEACHERS[number], email(number), "trainer", locale, "", "", ""]


def name(student: int) -> str:
    return f"Студент {student}"


def title(group: str) -> str:
    """The title of a group."""
    return f"Group {group}"


def email(teacher: int) -> str:
    """The e-mail address of a teacher, to which codes are mailed."""
    return f"t{teacher}@example.org"


def telegram_id(teacher: int) -> int:
    return 700_000 + teacher


def csv_file(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in (header, *rows))
