"""A table of recipients and personal texts in the console: chosen, corrected, put into the text, looked at, sent."""

import io
import uuid
from pathlib import Path

from openpyxl import Workbook

from tests.delivery.console.conftest import Person

HEADER = ("Имя", "Телефон", "Оценка")
WORD_BEHIND_THE_BAR = "Fill in {{…}} for each person; without a value, the word behind the bar: {{first_name|friends}}"
TEXT = "document.querySelector('#text').value"


def workbook(*rows: tuple[object, ...], second: bool = False) -> bytes:
    book = Workbook()
    for row in rows:
        book.active.append(row)
    if second:
        book.create_sheet("Черновик").append(["x"])
    book.save(file := io.BytesIO())
    return file.getvalue()


async def test_a_table_is_corrected_and_each_person_gets_its_own_text(
    person: Person, tmp_path: Path, axe_source: str
) -> None:
    phone, file = f"+7995{uuid.uuid4().int % 10**6:06d}", tmp_path / "оценки.xlsx"
    await person.visit("write", language="ru", width=390)
    file.write_bytes(workbook(HEADER, ("Анна", f"{phone}1", 5), ("Борис", "нет", 4), second=True))
    await person.browser.choose_files("#table", file)
    await person.sees("Строка 1, «Sheet, Черновик»: Заполнено несколько листов")
    await person.chooses("Лист", "Sheet")
    await person.sees("оценки.xlsx: 2 строки")
    for name in ("Имя", "Оценка"):
        await person.presses(name)
    assert await person.browser.run(TEXT) == "{{Имя}}{{Оценка}}"
    await person.writes("Текст", "{{Имя}}, ваша оценка: {{Оценка}}")
    await person.sees("Вместо {{…}} подставить каждому его значение")
    await person.sees("Строка 3, столбец Телефон, «нет»")
    await person.keeps_picture("write-table-faults-ru-390")
    file.write_bytes(workbook(HEADER, ("Анна", f"{phone}1", 5), ("Борис", f"{phone}2", None)))
    await person.browser.choose_files("#table", file)
    await person.sees("Строка 3, Борис (sms:")
    await person.sees("нет значения для {{оценка}}")
    file.write_bytes(workbook(HEADER, ("Анна", f"{phone}1", 5), ("Борис", f"{phone}2", 4.5)))
    await person.browser.choose_files("#table", file)
    await person.sees("2 получателя")
    await person.has_no_barrier_on_a_phone(axe_source, "write")
    await person.presses("Проверить")
    await person.sees("Анна, ваша оценка: 5")
    await person.sees("1 из 2")
    await person.presses("Следующий")
    await person.sees("Борис, ваша оценка: 4.5")
    await person.keeps_picture("write-personal-check-ru-390")
    assert await person.sideways() <= 0
    await person.presses("Отправить 2 людям")
    await person.sees("Получили 2 из 2")
    await person.sees("Анна, ваша оценка: 5")
    await person.sees("Борис, ваша оценка: 4.5")
    await person.keeps_picture("message-personal-ru-390")


async def test_pasted_braces_stay_if_the_writer_wants_them(person: Person) -> None:
    name = f"P{uuid.uuid4().hex[:6]}"
    contacts = {"sms": f"+7994{uuid.uuid4().int % 10**7:07d}"}
    await person.running.call("POST", "/v1/users", {"id": name, "name": name, "contacts": contacts})
    await person.visit("write")
    await person.writes("Find a group", name)
    await person.presses(name)
    await person.writes("Text", f"if {{{{ x }}}} {name}")
    await person.sees("no value for {{x}}")
    await person.presses(WORD_BEHIND_THE_BAR)
    await person.sees("1 person will be written to")
    await person.presses("Check")
    await person.sees(f"if {{{{ x }}}} {name}")
    await person.presses("Change")
    await person.presses(WORD_BEHIND_THE_BAR)
    await person.writes("Text", f"{{{{x|none}}}} {name}")
    await person.presses("Check")
    await person.presses("Get the word behind the bar in place of a value: 1 of 1")
    assert await person.browser.run("document.querySelector('details[open] li').textContent") == name
    await person.presses("Change")
    await person.writes("Text", f"if {{{{ x }}}} {name}")
    await person.presses(WORD_BEHIND_THE_BAR)
    await person.presses("Check")
    await person.presses("Send to 1 person")
    await person.sees("Repeat")
    (sent,) = (await person.running.call("GET", f"/v1/deliveries?text={name}"))["deliveries"]
    assert sent["text"] == f"if {{{{ x }}}} {name}"
