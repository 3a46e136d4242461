"""People are found and changed, groups are kept, a table is imported after its changes were shown."""

from pathlib import Path

from openpyxl import Workbook

from tests.delivery.console.conftest import Person

EXPORT = "fetch(document.querySelector('a[download=\\'users.csv\\']').href).then((file) => file.text())"
IS_ASKED = "Boolean(document.querySelector('dialog[open]'))"


async def confirms(person: Person) -> None:
    """Presses the button of the dialog, which is accepted."""
    await person.confirms()
    await person.browser.wait_for(f"!{IS_ASKED}")


async def chooses_file(person: Person, text: str, encoding: str = "utf-8") -> None:
    """Puts a file with this text into the field for a file and lets it be checked."""
    content = f"new Uint8Array({list(text.encode(encoding))})"
    file = f"new File([{content}], 'people.csv', {{type: 'text/csv'}})"
    await person.browser.wait_for("Boolean(document.querySelector('input[type=file]'))")
    await person.browser.run(
        f"(() => {{ const some = new DataTransfer(); some.items.add({file});"
        "document.querySelector('input[type=file]').files = some.files; })()"
    )
    shown = "document.querySelector('.picker').innerText"
    await person.browser.wait_for(f"{shown}.includes('Choose a file') || {shown}.includes('Выбрать файл')")
    await person.presses("Check the file")


async def test_a_person_is_added_found_by_a_contact_changed_and_deleted(person: Person) -> None:
    await person.visit("people")
    await person.presses("Add a person")
    await person.confirms()
    await person.sees("Give at least a name, an e-mail address or a contact.")
    await person.writes("Name", "Ada Byron")
    await person.writes("Address", "+79990000001")
    await person.confirms()
    await person.sees("SMS: +79990000001")
    await person.running.call("POST", "/v1/users", {"id": "people-vk", "contacts": {"vk": ["299887"]}})
    for address in ("299887", "%2B79990000001"):  # in whichever channel
        await person.go(f"people?address={address}")
        await person.sees("1 in all")
    await person.presses("Ada Byron")
    await person.sees("May write to")
    await person.presses("Edit")
    await person.writes("Name", "Ada Lovelace")
    await person.browser.run("document.querySelector('dialog[open] input[name=\"no sms\"]').click()")
    await confirms(person)
    await person.sees("Ada Lovelace")
    (changed,) = (await person.running.call("GET", "/v1/users?name=Ada+Lovelace"))["users"]
    assert changed["id"].startswith("p-")
    assert (changed["name"], changed["opt_out"]) == ("Ada Lovelace", ["sms"])
    assert changed["contacts"] == {"sms": ["+79990000001"]}
    await person.keeps_picture("person")
    await person.presses("Delete")
    await confirms(person)
    await person.sees("Deleted: Ada Lovelace")
    await person.sees_no("+79990000001")


async def test_an_administrator_revokes_the_key_of_a_person_that_has_lost_it(person: Person) -> None:
    await person.running.call("POST", "/v1/users", {"id": "keys-1", "name": "Emmy", "role": "trainer"})
    person.running.installation.ada("key", "create", "marks.py", "--person", "keys-1", "--scope", "send")
    await person.visit("person/keys-1")
    await person.sees("Keys for own programs")
    await person.sees("marks.py")
    await person.keeps_picture("person-keys")
    await person.presses("Revoke")
    await confirms(person)
    await person.sees("There are no keys")
    assert await person.running.call("GET", "/v1/users/keys-1/keys") == {"keys": []}


async def test_a_group_gets_members_and_owners_and_loses_them(person: Person) -> None:
    await person.running.call("POST", "/v1/users", {"id": "people-2", "name": "Grace", "email": "grace@example.org"})
    await person.visit("groups")
    await person.presses("Add a group")
    await person.writes("Number", "people-group")
    await person.writes("Title", "Compilers")
    await person.confirms()
    await person.sees("No members yet")
    await person.presses("Add members")
    await person.writes("Name, number or e-mail address", "grace@example.org")
    await confirms(person)
    await person.sees("1 in all")
    await person.presses("Add an owner")
    await person.writes("Name, number or e-mail address", "people-2")
    await confirms(person)
    await person.sees("Withdraw")
    await person.keeps_picture("group")
    await person.presses("Withdraw")
    await confirms(person)
    await person.sees("Nobody owns this group")
    await person.browser.run("document.querySelector('.rows input[type=checkbox]').click()")
    await person.presses("Take out")
    await confirms(person)
    await person.sees("No members yet")


async def test_a_table_is_imported_after_its_changes_were_shown(person: Person) -> None:
    await person.running.call("POST", "/v1/users", {"id": "people-3", "name": "Alan"})
    await person.visit("import")
    await chooses_file(person, "id;name\r\npeople-3;Алан Тьюринг\r\npeople-4;Курт\r\n", "cp1251")  # as Excel does
    await person.sees("New: 1. Changed: 1. As they are: 0.")
    assert await person.browser.run("document.querySelector('del').innerText") == "Alan"
    await person.keeps_picture("import-changes")
    assert (await person.running.call("GET", "/v1/users/people-3"))["name"] == "Alan"
    await person.presses("Import 2 rows")
    await person.sees("Imported. New: 1. Changed: 1.")
    assert (await person.running.call("GET", "/v1/users/people-3"))["name"] == "Алан Тьюринг"
    exported = await person.browser.run(EXPORT)
    assert "people-4;Курт" in exported


async def test_who_could_not_be_mailed_is_named_and_one_tick_mends_it(person: Person, axe_source: str) -> None:
    await person.visit("import")
    await chooses_file(person, "id,email\npeople-8,kurt@example.org\n")
    await person.sees("1 person has an address to sign in, but none to be written to.")
    await person.keeps_picture("import-not-mailed")
    assert await person.barriers(axe_source) == []
    await person.browser.run("document.querySelector('.check input').click()")
    await person.sees_no("but none to be written to")
    await person.presses("Import 1 row")
    await person.sees("Imported. New: 1.")
    made = await person.running.call("GET", "/v1/users/people-8")
    assert made["contacts"] == {"email": ["kurt@example.org"]}


async def test_errors_of_a_table_are_shown_by_row_and_nothing_can_be_imported(person: Person) -> None:
    await person.visit("import")
    await chooses_file(person, "id,email\npeople-5,nonsense\n")
    await person.sees("The file has errors")
    await person.keeps_picture("import-errors")
    assert await person.browser.run("document.querySelectorAll('tbody tr td')[0].innerText") == "2"
    await person.sees_no("Import 1 row")


async def test_a_school_s_own_headings_are_chosen_and_the_right_rows_are_imported(
    person: Person, axe_source: str
) -> None:
    await person.visit("import")
    keeps = "(make) => { URL.createObjectURL = (blob) => make.call(URL, window.made = blob) }"
    await person.browser.run(f"({keeps})(URL.createObjectURL)")
    await chooses_file(person, "Pupil;Mobile\nOwn Heading;+79990000931\nWrong Number;none\n")
    await person.sees("The file has errors")
    await person.keeps_picture("import-columns")
    await person.chooses("Pupil", "name")
    await person.presses("Import the others (1)")
    await person.sees("Imported. New: 1.")
    left_out = await person.browser.run("window.made.text()")
    assert left_out.splitlines()[1].startswith('"Wrong Number";"none";"'), left_out
    assert await person.barriers(axe_source) == []
    (made,) = (await person.running.call("GET", "/v1/users?name=own heading"))["users"]
    assert made["contacts"] == {"sms": ["+79990000931"]}


async def test_somebody_is_found_by_name_blocked_and_merged_with_a_second_entry(person: Person) -> None:
    call = person.running.call
    contacts = {"sms": ["+79990000017"]}
    await call("POST", "/v1/users", {"id": "people-5", "name": "Мария Склодовская", "contacts": contacts})
    await call("POST", "/v1/users", {"id": "people-6", "name": "М. Кюри", "email": "curie@example.org"})
    body = {"sender": {"id": 9}, "text": "Радий найден", "recipients": [{"id": "people-5"}], "channels": ["sms"]}
    await call("POST", "/v1/deliveries", body)
    await person.visit("write")
    await person.writes("Find a group or a person", "склод")
    await person.sees("Мария Склодовская")
    await person.go("people?name=склод")
    await person.sees("1 in all")
    await person.presses("Мария Склодовская")
    await person.sees("What was sent to this person")
    await person.browser.wait_for("Boolean(document.querySelector('.rows .row'))")
    await person.browser.run("document.querySelector('.rows .row').scrollIntoView()")
    await person.sees("Радий найден")
    await person.presses("Block")
    await confirms(person)
    await person.sees("This person is blocked")
    await person.presses("Merge")
    await person.writes("The entry that goes", "кюри")
    await person.confirms()
    await person.sees("Is deleted")
    await person.keeps_picture("merge")
    await person.confirms()
    await person.sees("The two are one person now")
    await person.sees("curie@example.org")
    await person.keeps_picture("person-sent")
    assert await call("GET", "/v1/users?name=кюри") == {"users": [], "next": None}
    await person.go("groups?kind=supergroups")


async def takes(person: Person, *names: str) -> None:
    """Ticks these people or groups of the dialog, as soon as they are found."""
    for name in names:
        await person.presses(name)


async def test_a_class_is_put_together_by_hand_and_some_of_it_are_moved(person: Person) -> None:
    call, names = person.running.call, ["Яна Ёлкина", "Анна Ежова", "Борис Юрин"]
    for number, name in enumerate([*names, "Анна Ежова"]):
        await call(
            "POST", "/v1/users", {"id": f"hand-{9 - number}", "name": name, "email": f"hand{number}@example.org"}
        )
    for group in ("8А hand", "8Б hand"):
        await call("POST", "/v1/groups", {"id": group, "title": group})
    await person.visit("group/8А hand", language="ru", width=390)
    await person.presses("Добавить участников")
    await person.writes("Имя, номер или адрес почты", "ежова")
    await person.sees("hand3@example.org")
    await person.confirms()
    await person.sees("Выберите из списка.")
    await person.keeps_picture("group-choose-ru-390")
    await person.browser.run(
        "[...document.querySelectorAll('.picks label')].find((one) => one.innerText.includes('hand1@')).click()"
    )
    for number, name in enumerate((names[0], names[2])):
        await person.writes("Имя, номер или адрес почты", name)
        await takes(person, name)
        await person.sees(f"Выбрано: {number + 2}")
    await confirms(person)
    await person.sees("Всего: 3")
    shown = await person.browser.run("[...document.querySelectorAll('.rows .row a')].map((one) => one.textContent)")
    assert shown == [names[1], names[2], names[0]]  # by name, though the ids are the other way round
    await person.writes("Имя", "ёлк")
    await person.sees("Всего: 1")
    await person.writes("Имя", "")
    await person.sees("Всего: 3")
    for name in names[:2]:
        await person.browser.run(f"document.querySelector('.rows input[aria-label*=\"{name}\"]').click()")
    await person.presses("Перевести в группу")
    await person.writes("Название группы", "8б hand")
    await takes(person, "8Б hand")
    await person.keeps_picture("group-move-ru-390")
    await confirms(person)
    await person.sees("Переведено в «8Б hand»: 2")
    await person.sees("Всего: 1")
    members = {group: await call("GET", f"/v1/groups/{group}/members?sort=name") for group in ("8А hand", "8Б hand")}
    assert [[one["name"] for one in found["users"]] for found in members.values()] == [[names[2]], [names[1], names[0]]]
    await person.go("person/hand-7")
    await person.presses("Добавить в группы")
    await person.writes("Название группы", "8б")
    await takes(person, "8Б hand")
    await confirms(person)
    await person.sees("8Б hand")
    assert len((await call("GET", "/v1/users/hand-7/groups"))["groups"]) == 2
    await person.presses("Добавить родителя")
    await person.writes("Имя, номер или адрес почты", names[0])
    await takes(person, names[0])
    await confirms(person)
    await person.presses("Не сообщать")
    await person.sees("ничего не получает об этом ребёнке")
    (guardian,) = (await call("GET", "/v1/users/hand-7"))["blocked_guardians"]
    await person.keeps_picture("person-guardians-ru-390")
    await person.go(f"person/{guardian}")
    await person.sees("Дети")
    await person.presses(names[2])
    await person.presses("Убрать")
    await person.sees("Никто не указан.")


SIDEWAYS = "[...document.querySelectorAll('.wide-table')].map((one) => one.scrollWidth - one.clientWidth)"


async def test_a_workbook_names_the_wrong_value_and_its_unknown_groups_are_created_by_one_press(
    person: Person, tmp_path: Path
) -> None:
    good, wrong = ["Анна Книжная", "+79990000031", "9К"], ["Борис Книжный", "нет", "9Л"]
    for name, rows in (("good.xlsx", [good]), ("wrong.xlsx", [good, wrong])):
        book = Workbook()
        for row in (["ФИО", "Телефон", "Класс"], *rows):
            book.active.append(row)
        book.save(tmp_path / name)
    await person.visit("import", language="ru", width=390)
    await person.browser.choose_files("input[type=file]", tmp_path / "wrong.xlsx")
    await person.presses("Проверить файл")
    await person.sees("нет")
    cells = "[...document.querySelectorAll('tbody tr:first-child td')].map((one) => one.innerText)"
    assert await person.browser.run(cells) == ["3", "Телефон", "нет\n\nЭто не номер телефона. Пример: +7 916 123-45-67"]
    assert not any(await person.browser.run(SIDEWAYS)), "what is wrong stands on the phone"
    await person.keeps_picture("import-value-ru-390")
    await person.browser.choose_files("input[type=file]", tmp_path / "good.xlsx")
    await person.presses("Проверить файл")
    await person.sees("Ещё нет групп (1): 9К.")
    await person.keeps_picture("import-unknown-groups-ru-390")
    await person.presses("Создать их (1)")
    await person.sees("Группы: 9К")
    assert not any(await person.browser.run(SIDEWAYS)), "what changes stands on the phone"
    await person.presses("Загрузить 1 строку")
    await person.sees("Загружено. Новых: 1.")
    (anna,) = (await person.running.call("GET", "/v1/groups/9К/members"))["users"]
    assert anna["name"] == "Анна Книжная"


async def test_a_field_gets_a_type_and_people_are_found_by_it_on_a_phone_in_russian(person: Person) -> None:
    call = person.running.call
    await call("POST", "/v1/users", {"id": "field-1", "name": "Ада Байрон"})
    await person.visit("fields", language="ru", width=390)
    await person.presses("Добавить поле")
    await person.writes("Имя", "Оценка")
    await person.confirms()
    await person.sees("Люди без значения")
    await call("PUT", "/v1/fields/рожд", {"type": "date"})
    await call("PUT", "/v1/fields/форма", {"type": "choice", "choices": ["очная", "заочная"]})
    await person.go("person/field-1")
    await person.presses("Изменить")
    await person.writes("оценка", "пять")
    await person.confirms()
    await person.sees("Значение не подходит полю")
    assert await person.browser.run("document.activeElement.name") == "fields.оценка"
    await person.writes("оценка", "4,50")
    await person.chooses("форма", "заочная")
    await person.browser.run("document.querySelector('[name=\"fields.рожд\"]').value = '2010-09-01'")
    await person.keeps_picture("person-own-fields")
    await confirms(person)
    await person.sees("1 сентября 2010 г.")
    await person.sees("4,5")
    changed = (await call("GET", "/v1/users/field-1"))["fields"]
    assert changed == {"оценка": "4.5", "рожд": "2010-09-01", "форма": "заочная"}
    await person.go("people?where=%D0%BE%D1%86%D0%B5%D0%BD%D0%BA%D0%B0>4,2")
    await person.sees("Всего: 1")
    await person.keeps_picture("people-by-own-field")
    await person.go("fields")
    await person.keeps_picture("fields-on-a-phone")


async def test_a_sync_is_seen_asked_for_and_forgotten_on_a_phone_in_russian(person: Person) -> None:
    call = person.running.call
    good = {"place": "/srv/exports/1c", "every": 3600, "created": 2, "updated": 11, "unchanged": 840, "left": 3}
    await call("PUT", "/v1/syncs/1c", {**good, "disagreements": ["1c-00042 email"]})
    changes = [{"id": "1c-00042", "created": False, "fields": ["name", "email"]}, {"id": "1c-00077", "created": True}]
    await call("PUT", "/v1/syncs/1c", {**good, "dry_run": True, "changes": changes})
    detail = "812 of 1600 people of isu are not in the file, so it is taken for a broken one; nothing was changed."
    bad = {"fault": "halved", "detail": detail, "place": "https://isu.example.org/people.csv"}
    await call("PUT", "/v1/syncs/isu", bad)
    await person.visit("sync", language="ru", width=390)
    await person.sees("Не хватает половины")
    await person.sees("1c-00042 Почта для входа")
    await person.browser.run("document.querySelector('summary').click()")
    await person.sees("Имя, Почта для входа")
    assert await person.sideways() <= 0
    await person.keeps_picture("sync-ru-390")
    await person.presses("Пробный запуск")
    await person.sees("Запуск запрошен")
    (asked, _) = (await call("GET", "/v1/syncs"))["sources"]
    assert asked["requested"]["dry_run"]
    await person.go("overview")
    await person.sees("Люди из isu не синхронизированы")
    for source in ("1c", "isu"):
        await call("DELETE", f"/v1/syncs/{source}")
    await person.go("sync")
    await person.sees("Источников пока нет")
