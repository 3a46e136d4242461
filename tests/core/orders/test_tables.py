"""Tables of recipients: who a row means, and that each bad file and each bad row is refused with its place."""

import io
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from openpyxl import Workbook
from openpyxl.styles.numbers import FORMAT_PERCENTAGE

from core.directory.csv_cells import TableRefused
from core.model.delivery import NewDelivery, Recipient, Sender
from core.model.people import Group, User, UserChange
from core.orders import Addressee, Caller, workbook_program
from core.orders.recipient_tables import MOST_COLUMNS
from core.uploads import Uploads
from tests.core.orders.conftest import ADMIN, OFFICE, Office, order
from tests.support.stack import TENANT

MOMENT = datetime(2026, 1, 2, 9, 30)  # noqa: DTZ001 - a workbook knows no zones
Rows = Sequence[Sequence[Any]]
HEADER = ("Имя", "Телефон", "Оценка")
ANNA, BORIS = ("Анна", "8 (999) 000-00-01", 5), ("Борис", "+79990000002", 4.5)


def csv(*rows: Sequence[Any], encoding: str = "utf-8") -> bytes:
    return "\r\n".join(";".join(map(str, row)) for row in rows).encode(encoding)


def xlsx(*rows: Sequence[Any], change: Callable[[Any], None] = lambda sheet: None) -> bytes:
    workbook = Workbook()
    for row in rows:
        workbook.active.append(row)
    change(workbook.active)
    workbook.save(file := io.BytesIO())
    return file.getvalue()


async def prepared(
    office: Office,
    content: bytes,
    text: str = "{{Имя}}: {{оценка}}",
    caller: Caller = ADMIN,
    sender: Sender = OFFICE,
    **more: str,
) -> NewDelivery:
    """The delivery of a table. It is not stored."""
    upload = await Uploads(office.stack.store).store(TENANT, "table", io.BytesIO(content))
    table = convert({"table": upload.id, **more}, Addressee)
    given = order(table, text=text, sender=sender, channels=("sms",))
    return (await office.sending.preview(given, caller)).delivery


def texts(delivery: NewDelivery) -> list[str]:
    assert delivery.personal
    return [": ".join(map(str, row)) for row in delivery.personal.values]


@pytest.mark.parametrize(
    "content",
    [
        csv(HEADER, ANNA, BORIS),
        csv(HEADER, ANNA, (), BORIS, encoding="cp1251"),
        xlsx(HEADER, ANNA, BORIS),
        xlsx((), HEADER, ANNA, (None,), BORIS),
    ],
)
async def test_rows_are_recipients_with_contacts_and_values(office: Office, content: bytes) -> None:
    delivery = await prepared(office, content)
    assert [(one.id, one.name, one.contacts) for one in delivery.recipients] == [
        ("sms:+79990000001", "Анна", {"sms": ["8 (999) 000-00-01"]}),
        ("sms:+79990000002", "Борис", {"sms": ["+79990000002"]}),
    ]
    assert texts(delivery) == ["Анна: 5", "Борис: 4.5"]
    assert await office.directory.users.lookup(TENANT, ["sms:+79990000001"]) == [None], "nobody is stored"


async def test_a_row_with_the_number_of_a_person_is_this_person_and_holds_to_its_wishes(office: Office) -> None:
    """Rows with the same number and other cells are messages of their own, and none goes to who wants none."""
    anna = User(1, "Анна Петрова", contacts={"sms": ["+79990000001"]})
    await office.directory.users.create(TENANT, anna)
    rows = csv(HEADER, ANNA, (*ANNA[:2], 3), BORIS)
    delivery = await prepared(office, rows)
    assert [one.id for one in delivery.recipients] == [1, "sms:+79990000001 (3)", "sms:+79990000002"]
    await office.directory.users.update(TENANT, 1, UserChange(opt_out=("sms",)))
    delivery = await prepared(office, rows)
    assert [(one.opted_out, one.contacts) for one in delivery.recipients] == [
        (("sms",), {}),
        (("sms",), {}),
        ((), {"sms": ["+79990000002"]}),
    ]


async def test_a_table_of_ten_thousand_rows_is_sent_to(office: Office) -> None:
    people = [(f"Person {number}", f"+7999{number:07}", number) for number in range(10_000)]
    delivery = await prepared(office, csv(HEADER, *people))
    assert texts(delivery) == [f"{name}: {mark}" for name, _, mark in people]


async def test_a_cell_of_a_workbook_is_written_as_it_is_shown(office: Office) -> None:
    def change(sheet: Any) -> None:
        sheet["C2"].number_format, sheet["D2"].number_format = FORMAT_PERCENTAGE, "0.00"

    values = (0.1 + 0.2, 0.5, 4.5, 79990000001.0, date(2026, 12, 31), MOMENT, True, " x ")
    header = ("sum", "share", "mark", "phone", "day", "moment", "yes", "text")
    content = xlsx(("id", *header), (7, *values), change=change)
    await office.directory.users.create(TENANT, User(7, "Anna"))
    text = " ".join(f"{{{{{name}|none}}}}" for name in header)
    delivery = await prepared(office, content, text)
    assert texts(delivery) == ["0.3: 50%: 4.50: 79990000001: 31.12.2026: 02.01.2026 09:30: да: x"]


async def test_what_a_cell_has_is_only_a_value(office: Office) -> None:
    rows = ("name", "телефон", "mark"), ("{{mark}}", "+79990000001", "x" * 4000), ("<b>", "+79990000002", "{{name}}")
    delivery = await prepared(office, csv(*rows), "{{name}} {{mark}}")
    assert texts(delivery) == [f"{{{{mark}}}}: {'x' * 4000}", "<b>: {{name}}"]
    assert [one.name for one in delivery.recipients] == ["{{mark}}", "<b>"], "a column named like a field of a person"


@pytest.mark.parametrize("make", [csv, xlsx])
async def test_every_row_that_is_not_understood_is_named_with_its_value(office: Office, make: Any) -> None:
    rows = (
        ("id", *HEADER),
        ("", *ANNA),
        ("", "Борис", "нет", 4),
        ("", "", "", 3),
        (77, "", "", 2),
        ("", "Вася", "", 5),
    )
    with pytest.raises(TableRefused) as refusal:
        await prepared(office, make(*rows))
    found = [(error.row, error.column, error.code, error.message.split(":")[0]) for error in refusal.value.errors]
    assert found == [
        (3, "Телефон", "ADDRESS_MALFORMED", "'нет'"),
        (4, "", "PERSON_UNIDENTIFIED", "The row says neither by an id, an address nor a name who is meant."),
        (5, "", "USER_NOT_FOUND", "'77'"),
        (6, "", "USER_NOT_FOUND", "'Вася'"),
    ]


def zipped(parts: int, size: int) -> bytes:
    """A zip file that is small, and large when it is unpacked."""
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(parts):
            archive.writestr(f"{number}", b"0" * size)
    return file.getvalue()


def other_sheet(sheet: Any) -> None:
    sheet.parent.create_sheet("Второй").append(["x"])


def merged_cells(sheet: Any) -> None:
    sheet.merge_cells("C2:C3")


def hidden_row(sheet: Any) -> None:
    sheet.row_dimensions[2].hidden = True


def error_cell(sheet: Any) -> None:
    sheet["C2"].value, sheet["C2"].data_type = "#N/A", "e"


def far_cell(sheet: Any) -> None:
    sheet["XFD1048576"] = 1


WIDE = tuple(f"c{number}" for number in range(MOST_COLUMNS + 1))


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (csv(HEADER), "TABLE_EMPTY", ""),
        (csv(("Имя", "имя "), ("a", "b")), "COLUMN_REPEATED", "'имя' occurs 2 times"),
        (csv(HEADER, (*ANNA, "x")), "COLUMN_WITHOUT_NAME", "Column 4 has the text 'x'"),
        (csv(HEADER, ("Анна", "+79990000001", "x" * 4097)), "CELL_TOO_LONG", "4097 characters"),
        (csv(WIDE, WIDE), "TOO_MANY_COLUMNS", ""),
        (csv(HEADER, *[ANNA] * 10_001), "TOO_MANY_ROWS", "at most 10000 rows"),
        (csv(HEADER, ('"Анна', "", "")), "CSV_QUOTE_UNCLOSED", ""),
        (xlsx(HEADER, ANNA)[:1000], "WORKBOOK_UNREADABLE", "damaged"),
        (b"\xd0\xcf\x11\xe0" + bytes(100), "CSV_NOT_TEXT", ""),
    ],
)
async def test_a_file_that_is_no_right_table_is_refused(
    office: Office, content: bytes, code: str, message: str
) -> None:
    with pytest.raises(TableRefused) as refusal:
        await prepared(office, content)
    assert refusal.value.errors[0].code == code
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (xlsx, "CSV_EMPTY", ""),
        (partial(xlsx, HEADER, ANNA, change=other_sheet), "SHEET_UNCLEAR", "'Sheet', 'Второй'"),
        (partial(xlsx, HEADER, ANNA, BORIS, change=merged_cells), "CELLS_MERGED", "C2:C3"),
        (partial(xlsx, HEADER, ANNA, BORIS, change=hidden_row), "ROWS_HIDDEN", "2"),
        (partial(xlsx, HEADER, ANNA, change=error_cell), "CELL_ERROR", "C2 shows the error #N/A"),
        (partial(xlsx, HEADER, (*ANNA[:2], "=1+1")), "FORMULA_UNSTORED", "C2 has a formula, but no value"),
        (partial(xlsx, HEADER, ANNA, change=far_cell), "TABLE_TOO_LARGE", "row 1048576 and column 16384"),
        (partial(zipped, 1, 129 * 2**20), "TABLE_TOO_LARGE", "128 MB"),
        (partial(zipped, 2001, 1), "TABLE_TOO_LARGE", ""),
    ],
)
def test_a_workbook_that_shows_something_else_or_is_too_large_is_refused(
    tmp_path: Path, make: Callable[[], bytes], code: str, message: str
) -> None:
    file = tmp_path / "table.xlsx"
    file.write_bytes(make())
    (error,) = workbook_program.printed(str(file), "")["errors"]
    assert error[2] == code
    assert message in error[3]


@pytest.mark.parametrize("change", [merged_cells, hidden_row])
def test_what_people_see_otherwise_is_named_with_its_row(tmp_path: Path, change: Callable[[Any], None]) -> None:
    file = tmp_path / "table.xlsx"
    file.write_bytes(xlsx(HEADER, ANNA, BORIS, change=change))
    ((row, *_),) = workbook_program.printed(str(file), "")["errors"]
    assert row == 2


def test_the_value_of_a_formula_may_be_an_empty_text(tmp_path: Path) -> None:
    file, made = tmp_path / "table.xlsx", zipfile.ZipFile(io.BytesIO(xlsx(HEADER, (*ANNA[:2], "=A9"))))
    with zipfile.ZipFile(file, "w") as archive:
        for name in made.namelist():
            archive.writestr(name, made.read(name).replace(b'"C2"><f>A9</f><v />', b'"C2" t="str"><f>A9</f><v></v>'))
    assert workbook_program.printed(str(file), "") == {"rows": [(1, [*HEADER]), (2, [*ANNA[:2], ""])], "errors": []}


async def test_a_sheet_is_chosen_by_its_name(office: Office) -> None:
    content = xlsx(HEADER, ANNA, change=other_sheet)
    assert texts(await prepared(office, content, sheet="sheet ")) == ["Анна: 5"]
    with pytest.raises(TableRefused, match="no sheet 'третий'; the sheets are 'Sheet', 'Второй'"):
        await prepared(office, content, sheet="третий")


async def test_two_rows_of_one_address_are_two_messages_if_they_differ(office: Office) -> None:
    same, other = ("Анна", "89990000001", 5), ("Вера", "+7 999 000 00 01", 4)
    delivery = await prepared(office, csv(HEADER, ANNA, same, other))
    assert [one.id for one in delivery.recipients] == ["sms:+79990000001", "sms:+79990000001 (4)"]


async def test_a_row_that_means_one_person_and_names_another_is_refused(office: Office) -> None:
    """As after a column was sorted without the others."""
    teacher = User(42, "Teacher", role="trainer")
    for user in (
        teacher,
        User("a", "Алёна Петрова", contacts={"sms": ["+79990000001"]}),
        User("b", "Борис", contacts={"sms": ["+79990000002"]}),
        User("c", contacts={"sms": ["+79990000003"]}),
    ):
        await office.directory.users.create(TENANT, user)
    await office.directory.groups.create(TENANT, Group("8А"), ["a", "b", "c"])
    await office.directory.ownerships.own(TENANT, 42, "group", "8А")
    rows = (
        ("id", "Имя", "Телефон"),
        ("a", "Борис", ""),
        ("b", "Алёна", ""),
        ("a", "петрова Алена", ""),
        ("c", "Вера", ""),
    )
    with pytest.raises(TableRefused) as refusal:
        await prepared(office, csv(*rows))
    assert [(error.row, error.code, error.value) for error in refusal.value.errors] == [
        (2, "PERSON_CONTRADICTED", "a"),
        (3, "PERSON_CONTRADICTED", "b"),
    ]
    assert "'Алёна Петрова', but the row has the name 'Борис'" in refusal.value.errors[0].message
    caller, apart = Caller(TENANT, person=teacher), (("id", "Телефон"), ("a", "89990000002"), ("b", "89990000002"))
    with pytest.raises(TableRefused) as refusal:
        await prepared(office, csv(*apart), "hello", caller, Sender(42))
    assert [(error.row, error.code) for error in refusal.value.errors] == [(2, "PERSON_CONTRADICTED")]


async def test_a_signed_in_person_writes_to_people_of_the_directory_that_rows_name(office: Office) -> None:
    teacher = User(42, "Teacher", role="trainer")
    people = User("a", "Анна", contacts={"sms": ["+79990000001"]}), User("b", "Борис Б", email="b@example.org")
    for user in (teacher, *people, User("c", "Вера", contacts={"sms": ["+79990000003"]})):
        await office.directory.users.create(TENANT, user)
    await office.directory.groups.create(TENANT, Group("8А"), ["a", "b"])
    await office.directory.ownerships.own(TENANT, 42, "group", "8А")
    header = ("Фамилия имя", "Телефон", "Почта", "Оценка")
    rows = (header, ("", "8 999 000-00-01", "", 5), ("", "", "B@example.org", 4))
    caller = Caller(TENANT, person=teacher)
    delivery = await prepared(office, csv(*rows), "{{оценка}}", caller, Sender(42))
    await office.directory.users.update(TENANT, "b", UserChange(external_ids=("1c:00042",)))
    by_id = await prepared(office, csv(("id", "Оценка"), ("1c:00042", 4)), "{{оценка}}", caller, Sender(42))
    assert [one.id for one in by_id.recipients] == ["b"]
    assert [(one.id, one.name) for one in delivery.recipients] == [("a", "Анна"), ("b", "Борис Б")]
    assert delivery.recipients[0] == Recipient(
        "a", "Анна", {"sms": ["+79990000001"]}, values={"телефон": "8 999 000-00-01", "оценка": "5"},
        place="recipients.0.table.2",
    )  # fmt: skip
