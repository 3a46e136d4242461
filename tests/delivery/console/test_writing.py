"""A secretary writes to a group, checks, sends once, and sees who was not reached and why."""

import uuid
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from openpyxl import Workbook

from tests.delivery.console.conftest import Person


async def school(person: Person) -> str:
    """A group with a person who is reached, one whose number is refused, and one without a contact; its title."""
    name, call = f"Группа {uuid.uuid4().hex[:6]}", person.running.call
    ids = [f"{name}-{number}" for number in range(3)]
    phone = f"+7999{uuid.uuid4().int % 10**7:07d}"
    await call("POST", "/v1/users", {"id": ids[0], "name": "Аня <script>alert(1)</script>", "contacts": {"sms": phone}})
    await call("POST", "/v1/users", {"id": ids[1], "name": "Боря 🐱"})
    await call("POST", "/v1/users", {"id": ids[2], "name": "ולד"})
    await call("POST", "/v1/groups", {"id": name, "title": name, "members": ids})
    return name


async def test_a_secretary_writes_to_a_group_on_a_phone_and_sees_who_was_not_reached(person: Person) -> None:
    group = await school(person)
    await person.visit("write", language="ru", width=390)
    await person.writes("Найти группу", group)
    await person.presses(group)
    await person.writes("Найти группу", f"{group}-0")
    await person.presses("Аня <script>alert(1)</script>")
    await person.writes("Текст", "Собрание в **10 часов** 🐱")
    await person.sees("3 получателя")
    await person.browser.run("location.reload()")
    await person.settled()
    await person.sees("3 получателя")
    await person.keeps_picture("write-filled-ru-390")
    await person.presses("Проверить")
    await person.sees("Будет отправлено: 1 из 3")
    await person.sees("Указаны дважды, получат один раз: 1")
    assert await person.browser.run("document.querySelector('.said').innerText") == "Собрание в 10 часов 🐱"
    await person.keeps_picture("write-check-ru-390")
    before = len((await person.running.call("GET", "/v1/deliveries"))["deliveries"])
    await person.browser.run("[...document.querySelectorAll('.primary')].at(-1).click()")
    await person.browser.run("[...document.querySelectorAll('.primary')].at(-1)?.click()")
    await person.sees("Получили 1 из 3")
    await person.sees("нет контакта: 2")
    await person.sees("Узнайте телефон")
    await person.keeps_picture("message-ru-390")
    assert len((await person.running.call("GET", "/v1/deliveries"))["deliveries"]) == before + 1
    assert await person.sideways() <= 0
    await person.writes("Найти человека", "script")
    await person.browser.wait_for("document.querySelectorAll('.rows .row').length === 1")
    assert "Аня <script>alert(1)</script>" in await person.browser.run("document.querySelector('.rows').textContent")
    await person.go("messages?since=2026-01-01")
    await person.sees("Получили 1 из 3")


CHOSEN = "[...document.querySelectorAll('.chip')].map((one) => one.innerText.replace(' ×', ''))"
TICKED = "document.querySelectorAll('fieldset input[type=checkbox]:checked').length"


EXCEL = "fetch([...document.querySelectorAll('a[download]')].at(-1).href).then((file) => file.text())"


def workbook(path: Path, *rows: tuple[object, ...]) -> Path:
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


async def test_a_secretary_s_day_on_a_phone(person: Person, tmp_path: Path) -> None:
    group, call = f"К{uuid.uuid4().hex[:6]}", person.running.call
    anna, boris = f"Анна {group}", f"Борис {group}"
    phone, mail = f"+7993{uuid.uuid4().int % 10**7:07d}", f"{uuid.uuid4().hex}@example.org"
    pupils = ("ФИО", "Телефон", "Почта", "Класс"), (anna, phone, None, group), (boris, None, mail, group)
    await person.visit("import", language="ru", width=390)
    await person.browser.choose_files("input[type=file]", workbook(tmp_path / "класс.xlsx", *pupils))
    await person.presses("Проверить файл")
    await person.presses("Создать их (1)")
    await person.sees("Загрузить 2 строки")
    await person.presses("Столбцы")
    await person.chooses("Почта", "contacts.email")
    await person.sees("Почта: ")
    await person.presses("Загрузить 2 строки")
    await person.sees("Загружено. Новых: 2.")

    await person.go("write")
    marks = workbook(tmp_path / "оценки.xlsx", ("Имя", "Оценка"), (anna, 5), (boris, 4))
    await person.browser.choose_files("#table", marks)
    await person.sees("оценки.xlsx: 2 строки")
    await person.writes("Текст", f"Оценка для {group}: {{{{Оценка}}}}")
    await person.sees("2 получателя")
    await person.presses("SMS")
    await person.presses("Проверить")
    await person.sees(f"Оценка для {group}: 5")
    await person.sees("Будет отправлено: 1 из 2")
    await person.presses("Отправить 1 человеку")
    await person.sees("Получили 1 из 2")
    first = await person.browser.run("decodeURIComponent(location.hash.split('/')[2])")

    await person.presses("Написать тем, кто не получил")
    await person.sees("1 получатель")
    assert (await person.browser.run(CHOSEN))[0].startswith("Кто не получил: Оценка для")
    assert await person.browser.run(TICKED) == 0
    await person.presses("Почта")
    await person.sees("Уже получили, им не пишем: 1")
    await person.keeps_picture("write-follow-up-ru-390")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("Получили 1 из 1")
    await person.sees("Тем, кто не получил сообщение")
    assert await person.sideways() <= 0
    await person.keeps_picture("message-follow-up-ru-390")
    await person.presses("Повторить")
    await person.browser.wait_for(f"{CHOSEN}[0]?.startsWith('Кто не получил: Оценка для')")
    await person.sees("Все уже получили или ответили: писать некому.")
    await person.browser.run("history.back()")
    await person.sees("Тем, кто не получил сообщение")

    await person.browser.run("[...document.querySelectorAll('main .plain-list a')][0].click()")
    await person.sees("Тем, кто не получил, написано ещё раз:")
    found = await call("GET", f"/v1/deliveries/{first}")
    assert [one["of"] for one in found["followed_by"]] == ["unreached"]
    header, *rows = (await person.browser.run(EXCEL)).splitlines()
    assert header == "Номер;Человек;Группы;Состояние;SMS;Текст"
    assert {row.split(";")[1]: row.split(";")[3] for row in rows} == {boris: "нет контакта", anna: "получено"}
    await person.go("costs")
    await person.sees("Частей SMS")
    await person.keeps_picture("costs-ru-390")


async def test_a_repeat_keeps_whom_a_message_was_for(person: Person) -> None:
    group, call = await school(person), person.running.call
    await call("PATCH", f"/v1/groups/{quote(group)}", {"title": f"Класс {group}"})
    body = {"sender": {"id": "office"}, "recipients": [{"group": group}, {"id": f"{group}-0"}], "text": group}
    made = await call("POST", "/v1/deliveries", {**body, "channels": ["sms"]})
    await person.visit(f"message/{made['id']}", language="ru", width=390)
    await person.presses("Повторить")
    await person.sees("3 получателя")
    assert await person.browser.run(CHOSEN) == [f"Класс {group}"]
    assert await person.browser.run(TICKED) == 1
    known = [one["channel"] for one in (await call("GET", "/v1/channels"))["channels"]]
    made = await call("POST", "/v1/deliveries", {**body, "channels": known})
    await person.go(f"messages?text={group}")
    await person.browser.wait_for("document.querySelectorAll('.rows .row').length === 2")
    await person.presses("Повторить")
    await person.sees("3 получателя")
    assert await person.browser.run(TICKED) == 0, "all channels that people have"
    await to_guardians(person, group)


async def to_guardians(person: Person, group: str) -> None:
    """Write to the guardians of a group: who has none is named before and after, and a repeat goes to them again."""
    child = {"guardians": [f"{group}-0"], "blocked_guardians": [f"{group}-2"]}
    await person.running.call("PATCH", f"/v1/users/{quote(f'{group}-1')}", child)
    select = "document.querySelector('[name=audience]')"
    await person.browser.run(f"{select}.value = 'guardians'; {select}.dispatchEvent(new Event('change'))")
    await person.sees("Нет родителя, который получит: Аня <script>alert(1)</script>, ולד")
    await person.sees("Заблокированы как родители, не получат ничего: ולד")
    await person.chooses("Ответ", "choice")
    await person.writes("Варианты", "Да\nНет")
    await person.presses("Согласие: если один из родителей выбрал второй вариант, это отказ")
    await person.keeps_picture("write-guardians-ru-390")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("о ком: Боря")
    await person.sees("Нет родителя, который получит: Аня <script>alert(1)</script>, ולד")
    (made, *_) = (await person.running.call("GET", f"/v1/deliveries?text={quote(group)}"))["deliveries"]
    assert made["answer"]["consent"]
    await person.keeps_picture("message-guardians-ru-390")
    await person.presses("Повторить")
    await person.browser.wait_for(f"{select}?.value === 'guardians' && document.querySelector('#consent').checked")
    assert await person.browser.run(CHOSEN) == [f"Класс {group}"]


async def test_a_message_is_repeated_and_stopped_on_a_phone(person: Person) -> None:
    group, call = await school(person), person.running.call
    await person.visit("write", language="ru", width=390)
    await person.writes("Найти группу", group)
    await person.presses(group)
    await person.writes("Текст", f"Напоминание {group}")
    await person.browser.run("[...document.querySelectorAll('details')].at(-1).open = true")
    await person.browser.run("document.querySelector('#every').value = 'когда-нибудь'")
    await person.browser.run("document.querySelector('#every').dispatchEvent(new Event('change'))")
    await person.sees("Непонятно, когда повторять")
    await person.browser.run("document.querySelector('#every').value = 'каждый понедельник в 8:00'")
    await person.browser.run("document.querySelector('#every').dispatchEvent(new Event('change'))")
    await person.sees("3 получателя")  # the form has what it loads and moves no more
    await person.keeps_picture("write-repeat-ru-390")
    await person.presses("Проверить")
    await person.sees("Когда: каждый понедельник в 8:00. Часовой пояс: UTC")
    await person.sees("Следующий раз: понедельник, ")
    await person.presses("Начать повторять")
    await person.sees(f"Напоминание {group}")
    await person.sees("Следующий раз:")
    assert await person.sideways() <= 0
    await person.keeps_picture("messages-series-ru-390")
    (series,) = (await call("GET", "/v1/series"))["series"]
    assert (series["cron"], series["state"]) == ("0 8 * * 1", "active")
    await person.presses("Остановить")
    await person.sees("остановлено")
    await person.presses("Убрать")
    await person.browser.run("document.querySelector('dialog .danger').click()")
    await person.sees_no("остановлено")
    assert (await call("GET", "/v1/series"))["series"] == []


async def test_clearing_takes_back_every_choice_that_is_shown(person: Person) -> None:
    """The form showed the ticks and the question of the message before, and sent the next one without them."""
    group = await school(person)
    await person.visit("write", language="ru", width=390)
    await person.writes("Найти группу", group)
    await person.presses(group)
    await person.writes("Текст", "Придёте?")
    await person.sees("3 получателя")
    await person.chooses("Кто получит", "both")
    await person.chooses("Ответ", "choice")
    await person.writes("Варианты", "Да\nНет")
    await person.presses("Отправить всеми")
    await person.presses("SMS")
    await person.browser.run("document.querySelector('.write-end button[type=button]').click()")  # before it is painted
    assert await person.browser.run("document.querySelectorAll('.write input[type=checkbox]:checked').length") == 0
    shown = "['audience', 'answer', 'text'].map((one) => document.getElementById(one).value)"
    assert await person.browser.run(shown) == ["students", "", ""]
    assert await person.browser.run("document.querySelector('[name=order]:checked').value") == "first"


async def test_texts_by_language_are_written_and_a_repeat_keeps_them(person: Person) -> None:
    group, call = await school(person), person.running.call
    await call("PATCH", f"/v1/users/{quote(f'{group}-0')}", {"locale": "en"})
    await person.visit("write", language="ru", width=390)
    await person.writes("Найти группу", group)
    await person.presses(group)
    await person.writes("Текст", f"Собрание {group}")
    await person.presses("Тексты на других языках")
    await person.writes("Для тех, чей язык английский", "**Meeting**, {{name}}")
    await person.sees("Английский текст: 1")
    await person.keeps_picture("write-languages-ru-390")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("Получили 1 из 3")
    (found,) = (await call("GET", f"/v1/deliveries?text={group}"))["deliveries"]
    assert found["texts"] == {"en": "<b>Meeting</b>, {{name}}"}
    await person.presses("Повторить")
    await person.sees("Английский текст: 1")
    assert await person.browser.run("document.querySelector('#text-en').value") == "**Meeting**, {{name}}"


async def test_a_draft_that_was_sent_in_another_tab_is_not_sent_again(person: Person) -> None:
    group = await school(person)
    await person.visit("write", language="ru")
    await person.writes("Найти группу", group)
    await person.presses(group)
    await person.writes("Текст", "Дважды")
    await person.sees("3 получателя")
    draft = await person.browser.run("localStorage.getItem('ada.draft')")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("Получили")
    await person.browser.run(f"localStorage.setItem('ada.draft', {draft!r})")
    await person.go("write")
    await person.sees("3 получателя")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("Получили")
    found = (await person.running.call("GET", "/v1/deliveries?text=Дважды"))["deliveries"]
    assert len(found) == 1


async def test_a_time_more_than_a_year_ahead_is_asked_about_before_it_is_sent(person: Person) -> None:
    group = await school(person)
    await person.visit("write", language="ru")
    await person.writes("Найти группу", group)
    await person.presses(group)
    await person.writes("Текст", group)
    far = f"{datetime.now(UTC) + timedelta(days=400):%F}T10:00"
    await person.browser.run(f"document.querySelector('#when').value = '{far}'")
    await person.browser.run("document.querySelector('#when').dispatchEvent(new Event('change'))")
    await person.sees("До этого времени больше года")
    await person.sees_no("3 получателя")
    await person.presses("Дата верная")
    await person.sees("3 получателя")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("запланировано")
    (found,) = (await person.running.call("GET", f"/v1/deliveries?text={group}"))["deliveries"]
    assert found["deliver_at"].startswith(far[:7])


async def test_rows_do_not_move_under_the_pointer_and_a_button_offers_the_new_ones(person: Person) -> None:
    await send(person, "The first")
    await person.visit("messages")
    await person.sees("The first")
    x, y = await person.middle_of("document.querySelector('.rows .row')")
    await person.browser.hover_at(x, y)
    await send(person, "The second")
    await person.sees("1 new. Show it")
    assert "The second" not in await person.browser.text("#content")
    await person.presses("1 new. Show it")
    await person.sees("The second")
    await person.keeps_picture("messages-rows-en-light-1280")


HELD_SEARCHES = """
    window.searches = [];
    const direct = window.fetch;
    window.fetch = async (url, ...rest) => {
      if (!String(url).includes("q=")) return direct(url, ...rest);
      const answer = await direct(url, ...rest);
      const place = window.searches.push(0) - 1;
      if (place === 0) await new Promise((release) => { window.release = release; });
      return answer;
    };
"""
"""Keeps the answer to the first search until `window.release()`."""


async def test_a_search_shows_what_it_has_found_although_an_outcome_changes_meanwhile(person: Person) -> None:
    people = [{"id": n, "name": f"Person {n}", "contacts": {"sms": f"+7999000000{n}"}} for n in range(3)]
    body = {"sender": {"id": 1}, "text": "Later", "recipients": people, "channels": ["sms"]}
    later = {"deliver_at": "2030-01-01T12:00:00Z", "far": True}
    made = await person.running.call("POST", "/v1/deliveries", body | later)
    await person.visit(f"message/{made['id']}")
    await person.browser.wait_for("document.querySelectorAll('.rows .row').length === 3")
    await person.sees("Later")
    await person.browser.run(HELD_SEARCHES)
    await person.writes("Find a person", "Person 1")
    await person.browser.wait_for("Boolean(window.release)")
    await person.browser.run("document.querySelector('.rows input').click()")
    await person.running.call("DELETE", f"/v1/deliveries/{made['id']}", {"recipient": [2]})
    await person.browser.wait_for("window.searches.length > 1")
    await person.browser.run("window.release()")
    await person.browser.wait_for(
        "document.querySelectorAll('.rows .row').length === 1"
        " && document.querySelector('.rows').innerText.includes('Person 1')"
    )


async def send(person: Person, text: str) -> None:
    body = {"sender": {"id": 1}, "text": text, "recipients": ["1=sms:+79990000001"], "channels": ["sms"]}
    await person.running.call("POST", "/v1/deliveries", body)


async def test_ten_thousand_recipients_scroll_and_one_is_found(person: Person) -> None:
    # No numbers of people of the other tests, some of whom want no messages.
    people = [{"id": n, "name": f"Person {n}", "contacts": {"sms": f"+7977{n:07d}"}} for n in range(10_000)]
    body = {"sender": {"id": 1}, "text": "Many", "recipients": people, "channels": ["sms"]}
    made = await person.running.call(
        "POST", "/v1/deliveries", {**body, "deliver_at": "2030-01-01T12:00:00Z", "far": True}
    )
    await person.visit(f"message/{made['id']}")
    await person.browser.wait_for("document.querySelectorAll('.rows .row').length === 100")
    await person.browser.run("scrollTo(0, document.body.scrollHeight)")
    await person.browser.wait_for("document.querySelectorAll('.rows .row').length >= 200")
    await person.writes("Find a person", "Person 9876")
    await person.browser.wait_for("document.querySelectorAll('.rows .row').length === 1")
    await person.presses("Cancel")
    await person.writes("To confirm, type", "10000")
    await person.confirms()
    await person.sees("Cancelled: 10,000")


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def test_files_of_the_device_are_uploaded_survive_a_reload_and_go_with_the_message(
    person: Person, tmp_path: Path
) -> None:
    group, plan, menu, large = await school(person), tmp_path / "план.pdf", tmp_path / "menu.txt", tmp_path / "film.mov"
    plan.write_bytes(b"Monday" * 1000)
    menu.write_text("soup")
    large.write_bytes(bytes(21 * 2**20))
    (picture := tmp_path / "cat.png").write_bytes(b64decode(PIXEL))
    await person.visit("write", language="ru", width=390)
    await person.writes("Найти группу", group)
    await person.presses(group)
    await person.browser.choose_files("#uploads", plan, menu, large, picture)
    await person.sees("Слишком большой файл")
    await person.sees_no("загружается")
    await person.sees("6 кБ")
    await person.browser.run("document.querySelector('.uploads').scrollIntoView({block: 'center'})")
    await person.browser.wait_for("document.querySelector('.uploads img[alt=\"cat.png\"]')?.naturalWidth === 1")
    await person.keeps_picture("write-files-ru-390")
    for name in ("menu.txt", "film.mov"):
        await person.browser.run(f"document.querySelector('[aria-label=\"Убрать: {name}\"]').click()")
        await person.sees_no(name)
    await person.browser.run("location.reload()")
    await person.settled()
    await person.sees("план.pdf")
    await person.sees("3 получателя")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("Получили")
    address = await person.browser.run("location.hash.split('/').at(-1)")
    file, picture = (await person.running.call("GET", f"/v1/deliveries/{address}"))["content"]["attachments"]
    assert (file["type"], file["name"]) == ("document", "план.pdf")
    await person.browser.wait_for("document.querySelector('.uploads img[alt=\"cat.png\"]')?.naturalWidth === 1")
    get = "fetch([...document.querySelectorAll('.uploads a')].find((one) => one.download === 'план.pdf').href)"
    assert await person.browser.run(f"{get}.then((one) => one.text())") == "Monday" * 1000
    assert (await person.running.call("GET", f"/v1/files/{file['file']}"))["bytes"] == 6000
