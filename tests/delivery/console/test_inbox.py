"""The inbox of the sandbox leads from a message to its delivery."""

from typing import Any

from aiohttp import ClientSession

from tests.delivery.console.conftest import Person
from tests.support.waiting import until

CONTACTS = {
    "telegram": "700701", "telegram-bot": "700702", "vk": "700703", "max": "700704", "sms": "+79990700705",
    "email": "inbox@example.org",
}  # fmt: skip


async def test_a_message_of_any_channel_leads_to_its_delivery_and_not_to_one_with_the_same_text(person: Person) -> None:
    made = []
    for _ in range(2):
        recipient = {"id": 7007, "name": "Olga", "contacts": CONTACTS}
        body = {"sender": {"id": 1}, "text": "The same text", "recipients": [recipient], "channels": list(CONTACTS)}
        made.append((await person.running.call("POST", "/v1/deliveries", body))["id"])
        await until(lambda: all_found(person, len(made)), within=60, every=0.2)
    await person.browser.open(f"{person.running.sandbox}#all", "en")
    row = "[...document.querySelectorAll('#messages tr')].find((one) => one.innerText.includes('700703'))"
    await person.browser.wait_for(f"Boolean({row})")
    await person.browser.run(f"{row}.querySelector('button').click()")
    link = await person.browser.wait_for("!document.querySelector('#delivery').hidden && location.hash && "
                                         "document.querySelector('#delivery').href")  # fmt: skip
    await person.visit(link.partition("#/")[2])
    await person.browser.wait_for(f"location.hash === '#/message/{made[-1]}'")
    await person.sees("Olga")


async def received(person: Person) -> list[dict[str, Any]]:
    """Return the messages with the text; a mail has its footer below."""
    async with ClientSession() as session, session.get(f"{person.running.sandbox}inbox.json") as response:
        messages = (await response.json())["messages"]
    return [one for one in messages if one["text"].splitlines()[:1] == ["The same text"]]


async def found(person: Person, message: dict[str, Any]) -> list[str]:
    name = f"{message['channel']}:{message['address']}:{message['reference']}"
    headers = {"Authorization": f"Bearer {person.running.key}"}
    async with ClientSession() as session:
        url = person.running.url + "/v1/deliveries"
        async with session.get(url, params={"message": name}, headers=headers) as response:
            return [name, *(one["id"] for one in (await response.json())["deliveries"])]


async def all_found(person: Person, count: int) -> bool:
    messages = await received(person)
    answers = [await found(person, one) for one in messages]
    return len(messages) == count * len(CONTACTS) and all(len(one) == 2 for one in answers)
