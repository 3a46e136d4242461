"""Replies in the console: a teacher reads and answers them, on a phone."""

import io
import uuid
from pathlib import Path

from core.redis.store import Store
from core.threads.files import ThreadFile
from core.threads.threads import Correspondent, Inbox, ReplyRoute, ThreadMessage, Threads
from core.uploads import Uploads
from tests.delivery.console.conftest import Person
from tests.delivery.console.test_daily_work import signed_in
from tests.support.waiting import until


async def test_a_teacher_reads_and_answers_a_reply(
    person: Person, store: Store, axe_source: str, tmp_path: Path
) -> None:
    teacher, own = await signed_in(person, store, "trainer")
    await teacher.visit("inbox", language="ru", width=390)
    await teacher.sees("Ответов пока нет")
    student, phone = f"student-{uuid.uuid4().hex[:6]}", f"+7997{uuid.uuid4().int % 10**7:07d}"
    uploaded = await Uploads(store).store("default", "Реферат.pdf", io.BytesIO(b"%PDF"))
    file = ThreadFile(uploaded.id, uploaded.type, uploaded.name, uploaded.bytes)
    words = "А в пятницу будут пары?"
    inbox, message = Inbox("user", own), ThreadMessage(0, "person", 0, student, words, "sms", 2, attachments=[file])
    about = (Correspondent(student, "Мария Иванова"), ReplyRoute("sms", phone), "", uuid.uuid4().hex)
    added = await Threads(store).add_of_person("default", inbox, *about, message)
    await teacher.visit("inbox", language="ru", width=390)
    await teacher.sees("1 новое")
    await teacher.has_no_barrier_on_a_phone(axe_source, "inbox")
    await teacher.writes("Имя или слова", "пётр")
    await teacher.sees("Ничего не найдено")
    await teacher.writes("Имя или слова", "иванова")
    await teacher.sees("1 новое")
    await teacher.go(f"thread/{added.thread}")
    await teacher.sees("А в пятницу будут пары?")
    await teacher.sees("Не передано файлов: 2")
    await teacher.sees("Реферат.pdf")
    await teacher.writes("Ваш ответ", "Да, в 10:00")
    await teacher.presses("Все ответы")
    await teacher.sees("Имя или слова")
    await teacher.visit(f"thread/{added.thread}", language="ru", width=390)
    written = "document.querySelector('textarea').value"
    assert await teacher.browser.run(written) == "Да, в 10:00", "an answer outlives Back and a reload"
    await teacher.presses("Ответить")
    await teacher.sees("Ответ отправлен")
    await teacher.sees("Да, в 10:00")
    await teacher.visit(f"thread/{added.thread}", language="ru", width=390)
    assert await teacher.browser.run(written) == ""
    await teacher.writes("Ваш ответ", "Или звоните: 8 912 345-67-89")
    await teacher.presses("Ответить")
    await teacher.sees("В ответе есть контакты")
    assert await teacher.barriers(axe_source) == []
    await teacher.keeps_picture("thread-address-ru-390")
    await teacher.confirms()
    await teacher.sees("Или звоните: 8 912 345-67-89")
    await teacher.has_no_barrier_on_a_phone(axe_source, "thread")
    (tmp_path / "Ведомость.pdf").write_bytes(b"%PDF")
    await teacher.sees("Файлы с этого устройства")
    await teacher.browser.choose_files("#uploads", tmp_path / "Ведомость.pdf")
    await teacher.sees("1 кБ")
    await teacher.browser.run("document.querySelector('textarea').focus()")
    for _ in range(3):  # the files, the cross beside the file, the button
        await teacher.browser.press("Tab")
    await teacher.browser.press("Enter")
    await teacher.sees("Ответ отправлен")
    await teacher.sees("Не передано файлов: 1")  # SMS shows none
    await teacher.presses("Не уведомлять")
    await teacher.sees("Человеку об этом не сообщают")
    await teacher.has_no_barrier_on_a_phone(axe_source, "thread")
    await teacher.presses("Пожаловаться")
    await teacher.writes("Что случилось", "Грубит")
    await teacher.confirms()
    await teacher.sees("Жалоба отправлена")
    await teacher.visit(f"thread/{added.thread}", language="en", width=1280)
    await teacher.keeps_picture("thread-en-1280")

    async def texts() -> list[str]:
        found = await person.running.call("GET", "/v1/deliveries?limit=50&sender=replies")
        return [one["text"] for one in found["deliveries"]]

    assert "Vera Secretary отвечает:\nДа, в 10:00" in await until(texts)
    order = {"sender": {"id": own}, "text": "Сдайте учебники", "recipients": [{"id": 1, "contacts": {"sms": phone}}]}
    await person.running.call("POST", "/v1/deliveries", {**order, "channels": ["sms"]})
    await person.visit("home", language="ru", width=390)
    await person.sees("Сдайте учебники")
    assert "отвечает" not in await person.browser.text(".last"), "an answer of an inbox is no message of the home page"
    await person.go("messages?sender=replies")
    await person.sees("Ответы людям")
    await teacher.visit("inbox", language="ru", width=390)
    await teacher.sees("Ответ: Не передано файлов: 1")
    await teacher.sees_no("1 новое")
    await teacher.go(f"thread/{added.thread}")
    await teacher.presses("Убрать из списка")
    await teacher.sees("Ответов пока нет")
