"""The web page, in a real browser: both languages, and a message from sending to its delivery report."""

import json
import re

import pytest

from core.courier import Sent
from core.deliveries.delivery_reports import DeliveryReports
from core.deliveries.parcels import Entry
from core.model.history_key import HistoryKey
from core.model.people import Group, User
from core.model.states import DeliveryState, Reason, Status, Verdict
from delivery.endpoints import pages
from delivery.http.responses.problems import CODES
from tests.delivery.conftest import ADMIN, Api, Couriers
from tests.support.browser import Browser


def words() -> dict[str, dict[str, dict[str, str]]]:
    page = pages.read_page("front.html")
    (found,) = re.findall(r'<script type="application/json" id="words">(.*?)</script>', page, re.DOTALL)
    table: dict[str, dict[str, dict[str, str]]] = json.loads(found)
    return table


@pytest.mark.parametrize("language", ["en", "ru"])
def test_the_page_has_plain_words_for_every_value_of_the_api(language: str) -> None:
    table = words()[language]
    for name, values in (("states", DeliveryState), ("statuses", Status), ("reasons", Reason), ("verdicts", Verdict)):
        assert table[name].keys() == {str(value) for value in values}
        assert not [text for text in table[name].values() if "_" in text]
    assert table["problems"].keys() <= CODES.keys()
    assert table.keys() == words()["en"].keys()


async def test_the_page_has_the_language_of_the_browser_and_a_switch(api: Api, browser: Browser) -> None:
    await browser.open(api.url, "ru-RU")
    assert "Ключ API" in await browser.text("form")
    assert "./ada up" in await browser.text("form")
    await browser.run("at('language').value = 'en', at('language').onchange()")
    assert "API key" in await browser.text("form")
    await browser.open(api.url, "ru-RU")
    assert "API key" in await browser.text("form"), "the choice is remembered"


async def send(browser: Browser, recipients: str, **more: str) -> None:
    await browser.fill(key=ADMIN, sender="42", text="Пары не будет", recipients=recipients, **more)
    await browser.click("form button")


@pytest.mark.row("C-91")
async def test_the_page_names_what_a_channel_could_not_show(api: Api, courier: Couriers, browser: Browser) -> None:
    await courier("sms", lambda message: Sent("1", not_shown=("photo menu.png",)))
    await browser.open(api.url, "ru-RU")
    await send(browser, "1=sms:+79990000001", channels="sms")
    await browser.wait_for("at('outcomes').innerText.includes('не показано: photo menu.png')")


async def test_sent_becomes_delivered_while_the_page_is_open(api: Api, courier: Couriers, browser: Browser) -> None:
    await courier("sms")
    await browser.open(api.url, "en-US")
    await send(browser, "1=sms:+79990000001\n2=vk:200002", channels="sms")
    await browser.wait_for("at('outcomes').innerText.includes('sent') && shown.state === 'finished'")
    assert "no contact" in await browser.text("#outcomes")
    assert await browser.text("#cancel") == await browser.text("#retry") == "", "there is nothing to cancel or retry"
    key = HistoryKey.parse(await browser.run("shown.id"))
    token = await DeliveryReports(api.store).token(key, "sms", 0, Entry(1, 0, 0, 1, "+79990000001"))
    assert (await api.call("GET", f"/v1/receipts/sms?token={token}&status=1")).json == {"changed": True}
    await browser.wait_for("at('outcomes').innerText.includes('delivered')")


@pytest.mark.row("D-01", "D-08")
async def test_a_message_to_a_group_shows_each_member_and_the_requested_time(
    api: Api, courier: Couriers, browser: Browser
) -> None:
    await courier("sms")
    directory = api.services.core.directory
    for number in (1, 2):
        await directory.users.create("default", User(number, contacts={"sms": [f"+7999000000{number}"]}))
    await directory.groups.create("default", Group("ИВТ-21"), [1, 2])
    await browser.open(api.url, "en-US")
    await send(browser, "group:ИВТ-21\n2", channels="sms", at="2020-01-01T00:00")
    await browser.wait_for("at('outcomes').innerText.split('sent').length === 3 && shown.state === 'finished'")
    assert "moved from 1/1/2020" in await browser.text("#facts")


@pytest.mark.parametrize(
    ("language", "everybody", "three"),
    [
        ("en", "All recipients were reached", "3 of 4 recipients were reached; the others have no contact"),
        ("ru", "Получили все", "Получили 3 из 4; у остальных нет контакта"),
    ],
)
async def test_page_and_list_claim_that_all_were_reached_only_if_they_were(
    api: Api, courier: Couriers, browser: Browser, language: str, everybody: str, three: str
) -> None:
    await courier("sms")
    await browser.open(api.url, language)
    people = "\n".join(f"{n}=sms:+7999000000{n}" for n in (1, 2, 3))
    await send(browser, f"{people}\n4=vk:200004", channels="sms")
    await browser.wait_for(f"at('verdict').innerText.startsWith('{three}')")
    await send(browser, people, channels="sms")
    await browser.wait_for(f"at('verdict').innerText === '{everybody}'")
    await browser.click("#recent")
    await browser.wait_for(f"at('list').innerText.includes('{three}')")
    assert everybody in await browser.text("#list")


async def test_a_scheduled_message_can_be_cancelled_once(api: Api, courier: Couriers, browser: Browser) -> None:
    await courier("sms")
    await browser.open(api.url, "ru")
    await send(browser, "1=sms:+79990000001", at="2027-01-01T00:00")
    await browser.wait_for("at('cancel').checkVisibility() && at('cancel').innerText === 'Отменить'")
    await browser.click("#cancel")
    await browser.wait_for("at('outcomes').innerText.includes('отменено')")
    assert await browser.text("#cancel") == ""


async def test_errors_name_the_line_and_what_is_wrong(api: Api, courier: Couriers, browser: Browser) -> None:
    await courier("sms")
    await browser.open(api.url, "ru")
    await send(browser, "1=sms:+79990000001\n2=sms")
    await browser.wait_for("at('problem').innerText.startsWith('строка 2: Получатель записан неверно')")
    await send(browser, "1=sms:+79990000001\n2=sms:123")
    await browser.wait_for("at('problem').innerText.startsWith('строка 2: В этом канале таких адресов не бывает')")
    await browser.fill(key="ada_wrong")
    await browser.click("#recent")
    await browser.wait_for("at('problem').innerText === 'Этот ключ API неизвестен или отозван.'")
