"""The inbox page in a browser: a person's channels side by side, updated live."""

import asyncio
import smtplib
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientSession
from vkbottle import API
from vkbottle.tools import Callback, Keyboard, PhotoMessageUploader, Text

from sandbox.sandbox import Sandbox
from tests.sandbox.conftest import CallbackServer
from tests.sandbox.page_person import HOSTILE, PersonAtThePage, bot, page
from tests.support.browser import Browser
from tests.support.waiting import until
from tests.support.whole_aiogram import Bot, types

__all__ = ["bot", "page"]


TEACHER = 100_001


async def test_a_person_writes_to_the_bot_presses_its_buttons_and_sees_the_edited_message(
    page: PersonAtThePage, bot: Bot, browser: Browser
) -> None:
    await page.open()
    await page.write("telegram-bot", "/start")
    await page.sees_in_chat("telegram-bot", "Choose a group")
    await page.press("☐ ИВТ-21")
    await page.sees_in_chat("telegram-bot", "☑ ИВТ-21")
    await page.sees_in_chat("telegram-bot", "chosen: True")
    await page.sees_in_chat("telegram-bot", "edited")
    await page.sees("<b>chosen</b>", "#chat-telegram-bot .answer")  # the bot answers after it has edited
    await browser.press("Enter")  # the button in the same place has the focus
    await page.sees_in_chat("telegram-bot", "☐ ИВТ-21")
    await page.press("Menu")
    await page.sees_in_chat("telegram-bot", "Преподаватель (teacher) wrote: Menu")


async def test_a_person_sends_a_photo_with_a_caption(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser, tmp_path: Path
) -> None:
    await page.open()
    await page.write("telegram-bot", "/start")
    photo = tmp_path / "room.png"
    photo.write_bytes(b"\x89PNG picture")
    await browser.wait_for("document.querySelector('#write-telegram-bot').value === ''")  # it has been sent
    await browser.wait_for("document.querySelector('#chat-telegram-bot input[type=file]:not([hidden])') !== null")
    await browser.run("document.querySelector('#write-telegram-bot').value = 'My room'")
    await browser.choose_files("#chat-telegram-bot input[type=file]", photo)
    await page.sees_in_chat("telegram-bot", "My room")
    await browser.wait_for("document.querySelector('#chat-telegram-bot img.photo') !== null")
    assert await browser.run("document.querySelector('#write-telegram-bot').value") == ""
    assert "room.png" in str(sandbox.bot_api.people.shown(TEACHER))


async def test_each_further_bot_has_a_chat_of_its_own(page: PersonAtThePage, sandbox: Sandbox) -> None:
    await page.open()
    async with ClientSession() as session:
        for token in (sandbox.bot_api.token, "5001:sandbox"):
            body = {"chat_id": TEACHER, "text": f"I am {token}"}
            async with session.post(f"{sandbox.bot_api.url}/bot{token}/sendMessage", json=body) as response:
                assert response.status == 200
    await page.sees_in_chat("telegram-bot", f"I am {sandbox.bot_api.token}")
    await page.sees_in_chat("telegram-bot5001", "I am 5001:sandbox")
    await page.write("telegram-bot5001", "to the second")
    await page.sees_in_chat("telegram-bot5001", "to the second")
    assert "to the second" not in str(sandbox.bot_api.people.shown(TEACHER))


async def test_hostile_text_is_shown_as_text(
    page: PersonAtThePage, bot: Bot, sandbox: Sandbox, browser: Browser
) -> None:
    await page.open()
    await page.write("telegram-bot", "/start")
    for channel, address in [("telegram", "100001"), ("vk", "200001"), ("sms", "+79990100001")]:
        sandbox.state.receive(channel, address, HOSTILE, reference="1")
    sandbox.state.receive("email", "teacher@sandbox.example", "text", reference="2", subject=HOSTILE)
    for channel in ("telegram-bot", "telegram", "vk", "sms", "email"):
        await page.sees_in_chat(channel, HOSTILE)
    await page.open("#all")
    await page.sees(HOSTILE, "#messages")
    assert await browser.run("document.title") == "Sandbox"
    assert await browser.run("document.querySelectorAll('img').length") == 0


async def test_an_sms_that_a_person_writes_is_sent_to_the_inbound_url(
    page: PersonAtThePage, sandbox: Sandbox, callbacks: CallbackServer, browser: Browser
) -> None:
    await page.open()
    await page.write("sms", "ИВТ-21: пары не будет")
    await page.sees_in_chat("sms", "no inbound URL is set")
    sandbox.sms.inbound_url = f"{callbacks.url}/in?from=%p&text=%a"
    await page.write("sms", " & <Wi-Fi>")  # what was refused is still in the field
    await until(lambda: callbacks.calls)
    assert callbacks.calls == [{"path": "/in", "from": "+79990100001", "text": "ИВТ-21: пары не будет & <Wi-Fi>"}]
    await page.sees("ИВТ-21: пары не будет & <Wi-Fi>", "#chat-sms .log")
    await browser.wait_for("document.getElementById('write-sms').value === ''")
    assert await browser.text("#chat-sms .problem") == ""


async def test_a_mail_appears_with_subject_and_text_while_the_page_is_open(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    await page.open()
    await page.sees_in_chat("email", "teacher@sandbox.example")
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ada@sandbox.example", "teacher@sandbox.example", "<b>Тема</b>"
    message.set_content("Моей пары сегодня не будет.\nЗамена: «Сети» 🙂")
    url = urlsplit(sandbox.mail.url)
    await _submit(str(url.hostname), url.port or 0, message)
    await page.sees_in_chat("email", "Моей пары сегодня не будет.\nЗамена: «Сети» 🙂")
    assert await browser.text("#chat-email .subject") == "<b>Тема</b>"
    assert await browser.text("#chat-email form") == "", "mails are not written on this page"


async def test_a_mail_is_found_and_shown_as_html_text_source_headers_and_files(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    smtp = urlsplit(sandbox.mail.url)
    for number in range(2):
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "ada@sandbox.example", "anna@example.org", f"Lesson {number}"
        mail.set_content(f"Room {number}")
        mail.add_alternative(f"<h1>Room {number}</h1>{HOSTILE}", subtype="html")
        mail.add_attachment(b"a,b", maintype="text", subtype="csv", filename="table.csv")
        await _submit(str(smtp.hostname), smtp.port or 0, mail)
    await page.open("#all")
    await page.sees("Lesson 1", "#messages")
    await browser.type("#search", "room 0")
    await page.sees_no("Lesson 1", "#messages")
    await browser.wait_for("Boolean(document.querySelector('#messages button'))")
    await browser.run("document.querySelector('#messages button').click()")
    await page.sees("Lesson 0", "#message")
    await browser.wait_for("document.querySelector('#message iframe')?.getAttribute('sandbox') === ''")
    await page.sees("table.csv text/csv, 3 bytes", "#files")
    await page.press("Headers", "#views")
    await page.sees("anna@example.org", "#view")
    await page.press("Source", "#views")
    await page.sees("multipart/alternative", "#view")
    await page.press("Text", "#views")
    await page.sees("Room 0", "#view")
    async with ClientSession() as session:
        async with session.get(f"{sandbox.page_url}mails/1/html") as shown:
            assert shown.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
            assert "<h1>Room 0</h1>" in await shown.text()
        async with session.get(f"{sandbox.page_url}mails/1/files/0") as file:
            assert (await file.read(), file.content_type) == (b"a,b", "application/octet-stream")
        for missing in ("mails/9", "mails/9/html", "mails/1/files/1"):
            assert (await session.get(sandbox.page_url + missing)).status == 404


async def _submit(host: str, port: int, message: EmailMessage) -> None:
    def send() -> None:
        with smtplib.SMTP(host, port, timeout=10) as smtp:
            smtp.login("ada", "sandbox")
            smtp.send_message(message)

    await asyncio.to_thread(send)


async def test_a_person_reads_and_writes_in_vk_and_telegram(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    sandbox.state.receive("vk", "200001", "Пары не будет", reference="1")
    await page.open()
    await page.sees_in_chat("vk", "Пары не будет")
    await browser.click("#chat-vk [data-action=read]")
    await page.sees_in_chat("vk", "✓✓ read")
    await page.write("vk", "Спасибо")
    await page.sees("Спасибо", "#chat-vk .log")
    await page.write("telegram", "Понятно")
    await page.sees("Понятно", "#chat-telegram .log")
    assert sandbox.vk.long_poll.ts == 2, "the community has an event of what was written"


async def test_a_person_is_created_with_suggested_addresses_and_removed(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    await page.open()
    await page.sees("Преподаватель", "#persons")
    await browser.click("#creation summary")
    await browser.run("document.querySelector('#person [name=name]').value = '<i>Мария</i>'")
    await browser.click("#person button")
    await page.sees("person3@sandbox.example", "#columns")
    sandbox.state.receive("sms", "+79990100003", "Hello", reference="1")
    await page.sees_in_chat("sms", "Hello")
    await browser.click("#person button")  # the suggestion has changed, but the name is missing
    assert await browser.text("#persons [aria-current]") == "<i>Мария</i>"
    await browser.click("#remove")
    await page.sees("teacher@sandbox.example", "#columns")
    await page.sees_no("Мария", "#persons")


async def test_the_page_reports_an_address_that_somebody_has(page: PersonAtThePage, browser: Browser) -> None:
    await page.open("", "ru")
    await page.sees("Преподаватель", "#persons")
    await browser.click("#creation summary")
    await browser.run("document.querySelector('#person [name=name]').value = 'x'")
    await browser.run("document.querySelector('#person [name=vk]').value = '200001'")
    await browser.click("#person button")
    await page.sees("Такой адрес уже есть у другого человека.", "#person")


async def test_an_address_among_all_messages_opens_the_chats_of_its_person(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    sandbox.state.receive("vk", "200002", "known", reference="1")
    sandbox.state.receive("sms", "+79001112233", "new", reference="2")
    await page.open("#all")
    await page.sees("known", "#messages")
    await page.press("+79001112233", "#messages")
    await page.sees_in_chat("sms", "new")
    assert await browser.text("#persons [aria-current]") == "+79001112233"
    await page.open("#all")
    await page.press("200002", "#messages")
    await page.sees_in_chat("vk", "known")
    assert await browser.text("#persons [aria-current]") == "Студент (student)"


async def test_all_messages_are_filtered_and_new_ones_are_first(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    sandbox.state.receive("vk", "5", "in vk", reference="1")
    sandbox.state.receive("sms", "+7999", "by sms", reference="2")
    await page.open("#all")
    await page.sees("in vk", "#messages")
    sandbox.state.receive("vk", "6", "later", reference="3")
    await page.sees("later", "#messages tr:first-child")
    await browser.run("document.getElementById('channel').value = 'vk'")
    await browser.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
    await page.sees_no("by sms", "#messages")
    await page.sees("in vk", "#messages")


async def test_a_rule_is_added_and_removed_and_counters_are_shown(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    sandbox.state.count("vk", "execute", 7)
    await page.open("#faults")
    await page.sees("execute\t7", "#counters")
    await browser.run("document.querySelector('#rule [name=channel]').value = 'vk'")
    await browser.run("document.querySelector('#rule [name=channel]').dispatchEvent(new Event('change'))")
    await browser.run("document.querySelector('#rule [name=value]').value = '901'")
    await browser.click("#rule button")
    await page.sees("vk\t*\t*\terror\t901\t∞", "#rules")
    await browser.click("#clear")
    await page.sees_no("error", "#rules")
    assert sandbox.state.rules() == {}


async def test_the_language_is_that_of_the_browser_until_another_one_is_chosen(
    page: PersonAtThePage, browser: Browser
) -> None:
    await page.open("", "ru-RU")
    await page.sees("Все сообщения", "#tabs")
    await page.sees("Отметить прочитанным", "#chat-vk")
    await browser.run("document.getElementById('language').value = 'en'")
    await browser.run("document.getElementById('language').dispatchEvent(new Event('change'))")
    await page.sees("All messages", "#tabs")
    await page.sees("Mark as read", "#chat-vk")
    await page.open("", "ru-RU")
    await page.sees("All messages", "#tabs")


async def test_the_page_continues_when_the_sandbox_is_back(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    await page.open()
    await page.sees("teacher@sandbox.example", "#columns")
    await sandbox.web.stop()
    await page.sees("connection lost", "header")
    await sandbox.web.start()
    sandbox.state.receive("vk", "200001", "after the restart", reference="1")
    await page.sees_in_chat("vk", "after the restart")
    await page.sees_no("connection lost", "header")


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000"
    "000049454e44ae426082"
)


async def test_a_person_in_vk_sees_a_photo_and_presses_buttons(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    api = API(sandbox.vk.token)
    api.API_URL = sandbox.vk.url
    photo = await PhotoMessageUploader(api).upload(PIXEL, name="menu.png", peer_id=200_001)
    inline = Keyboard(inline=True).add(Callback("Суп", {"data": "soup"})).get_json()
    await api.messages.send(peer_id=200_001, random_id=1, message="Меню", attachment=photo, keyboard=inline)
    reply = Keyboard().add(Text("Назад")).get_json()
    await api.messages.send(peer_id=200_001, random_id=2, message="Или", keyboard=reply)
    await page.open()
    await page.sees_in_chat("vk", "Меню")
    await browser.wait_for("document.querySelector('#chat-vk img')?.naturalWidth === 1")
    await page.press("Суп", "#chat-vk")
    await page.press("Назад", "#chat-vk")
    await page.sees("Назад", "#chat-vk .log")
    await api.messages.edit(peer_id=200_001, conversation_message_id=1, message="Суп кончился")
    await page.sees("Суп кончился", "#chat-vk .log")
    await page.sees_no("Меню", "#chat-vk .log")
    await api.http_client.close()
    kinds = [event["type"] for event in await _events_of_vk(sandbox)]
    assert kinds == ["message_event", "message_new"]


async def test_a_person_sees_the_photos_and_files_of_the_bot(page: PersonAtThePage, bot: Bot, browser: Browser) -> None:
    await bot.send_photo(100_001, types.BufferedInputFile(PIXEL, "menu.png"), caption="Меню")
    await bot.send_voice(100_001, types.BufferedInputFile(b"voice", "hello.ogg"))
    await bot.send_document(100_001, "https://example.org/plan.pdf")
    await page.open()
    await page.sees_in_chat("telegram-bot", "Меню")
    await browser.wait_for("document.querySelector('#chat-telegram-bot img')?.naturalWidth === 1")
    await browser.wait_for("document.querySelector('#chat-telegram-bot audio') !== null")
    await page.sees("plan.pdf", "#chat-telegram-bot .log")


async def _events_of_vk(sandbox: Sandbox) -> list[dict[str, Any]]:
    answer = await sandbox.vk.long_poll.answer({"key": sandbox.vk.long_poll.key, "ts": "1", "wait": "0"})
    return list(answer["updates"])


async def test_a_person_joins_a_group_by_its_number_writes_there_and_leaves(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    sandbox.bot_api.joining.set_up(-1_001_000_000_001, title="Клуб")
    await page.open()
    await page.sees_in_chat("telegram-bot", "Join a group")
    await browser.run("window.prompt = (_, suggested) => suggested")
    await page.press("Join a group")
    group = "telegram-bot-1001000000001"
    await page.sees_in_chat(group, "Клуб")
    await page.sees_in_chat(group, "joined")
    await page.write(group, "привет")
    await page.sees_in_chat(group, "привет")
    chat = sandbox.bot_api.people.messages(-1_001_000_000_001)
    assert [one.get("text") for one in chat] == [None, "привет"]
    await page.press("Leave the group", f"#chat-{group}")
    await page.sees_no("Клуб")


async def test_a_person_in_max_starts_the_bot_presses_a_button_and_stops_it(
    page: PersonAtThePage, sandbox: Sandbox, browser: Browser
) -> None:
    headers, url = {"Authorization": sandbox.max.token}, f"{sandbox.max.url}/messages?user_id=300001"
    rows = [[{"type": "callback", "text": "Да", "payload": "y"}], [{"type": "message", "text": "Меню"}]]
    keyboard = {"type": "inline_keyboard", "payload": {"buttons": rows}}
    await page.open()
    async with ClientSession(headers=headers) as session:
        async with session.post(url, json={"text": "Придёте?", "attachments": [keyboard]}) as sent:
            assert sent.status == 200
        await page.sees_in_chat("max", "Придёте?")
        await browser.click("#chat-max [data-action=start]")
        await page.press("Меню", "#chat-max")
        await page.sees("Меню", "#chat-max .message.person")
        await browser.click("#chat-max [data-action=block]")
        await page.sees("The bot is blocked", "#chat-max .answer")
        async with session.post(url, json={"text": "x"}) as refused:
            assert refused.status == 403
