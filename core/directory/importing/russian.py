"""The names of columns and values as spreadsheets in Russia have them, in the form of `headers.normal`. docs/import.md
lists them. Pure.
"""

from collections.abc import Mapping, Sequence

from core.directory.csv_cells import CONTACTS, FileKind
from core.model.contacts.addresses import channel_records

_PERSON = ("ид", "человек", "участник", "пользователь")
_TITLE = ("название", "наименование")


def _names(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: column for column, names in columns.items() for name in names}


COLUMNS: Mapping[str, Mapping[str, str]] = {
    "users": _names(
        {
            "id": ("ид", "идентификатор", "код", "табельный номер"),
            "name": ("фио", "ф и о", "имя", "фамилия имя отчество", "фамилия и имя", "фамилия имя"),
            "last_name": ("фамилия", "last name", "surname"),
            "first_name": ("first name",),
            "middle_name": ("отчество", "middle name", "patronymic"),
            "email": ("почта", "электронная почта", "эл почта", "e-mail"),
            "role": ("роль",),
            "locale": ("язык",),
            "opt_out": ("отказ", "не писать"),
            "groups": ("группа", "группы", "класс", "классы"),
            "guardians": ("родители", "представители", "законные представители"),
            **{f"{CONTACTS}{channel}": record.column_names for channel, record in channel_records().items()},
        }
    ),
    "contacts": _names({"user": _PERSON, "channel": ("канал",), "address": ("адрес", "контакт")}),
    "groups": _names({"id": ("ид", "группа", "код"), "title": _TITLE, "virtual": ("виртуальная",)}),
    "members": _names({"group": ("группа",), "user": _PERSON}),
    "supergroups": _names({"id": ("ид", "супергруппа", "код"), "title": _TITLE, "groups": ("группы",)}),
    "ownerships": _names({"user": ("владелец", *_PERSON), "kind": ("вид",), "id": ("группа", "код")}),
}

PARTS_OF_A_NAME: Mapping[str, str] = {"имя": "first_name", "name": "first_name"}
"""Names of columns that mean a part beside another part: Имя is the first name beside Фамилия, else the whole name."""

ROLES: Mapping[str, str] = {
    "студент": "student",
    "ученик": "student",
    "преподаватель": "trainer",
    "учитель": "trainer",
    "тренер": "trainer",
    "сотрудник": "staff",
    "администратор": "admin",
}
LOCALES: Mapping[str, str] = {"русский": "ru", "рус": "ru", "английский": "en", "англ": "en"}
OBJECT_KINDS: Mapping[str, str] = {"группа": "group", "супергруппа": "supergroup"}


def in_russian(kind: FileKind, rows: Sequence[Sequence[str]], columns: Sequence[str]) -> Sequence[Sequence[str]]:
    """Return rows of an export with the words that the import reads. `columns`: of the export; the header is a row."""
    header = [_HEADERS[kind].get(column, column) for column in columns]
    words = [_VALUES.get(column, {}) for column in columns]

    def translated(row: Sequence[str]) -> Sequence[str]:
        return [known.get(cell, cell) for known, cell in zip(words, row, strict=True)]

    return [header if list(row) == list(columns) else translated(row) for row in rows]


def _first_names(names: Mapping[str, str]) -> Mapping[str, str]:
    """Return column → the first of its names, as a header is written: ФИО, Почта."""
    first: dict[str, str] = {}
    for name, column in names.items():
        first.setdefault(column, name.upper() if len(name) <= _SHORT else name.capitalize())
    return first


_SHORT = 3
_HEADERS = {kind: _first_names(names) for kind, names in COLUMNS.items()}
_VALUES = {
    "role": {value: word for word, value in reversed(list(ROLES.items()))},
    "locale": {value: word for word, value in reversed(list(LOCALES.items()))},
    "kind": {value: word for word, value in OBJECT_KINDS.items()},
}
