"""A person gets one message per address, however the address is written (D-13)."""

from typing import Any

import pytest

from core.model.contacts.addresses import without_duplicates
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.support.waiting import until

WRITTEN = ["+79600001000", "8 (960) 000-10-00", "7 960 000 10 00", "9600001000", "+7 960 000‑10‑00"]


@pytest.mark.parametrize(
    ("channel", "addresses", "left"),
    [
        ("sms", WRITTEN, ["+79600001000"]),
        ("sms", ["+44 (0)20 7946 0958", "0044 20 7946 0958", "+442079460958"], ["+44 (0)20 7946 0958"]),
        (
            "sms",
            ["89600001000", "+79600001001", "no number", "no number"],
            ["89600001000", "+79600001001", "no number"],
        ),
        (
            "telegram",
            ["+79600001000", "+7 (960) 000-10-00", "100001", "9600001000"],
            ["+79600001000", "100001", "9600001000"],
        ),
        ("telegram", ["@Anna", "@anna", "@ben"], ["@Anna", "@ben"]),
        (
            "email",
            ["Anna@Example.org", " anna@example.org", "anna@example.com"],
            ["Anna@Example.org", "anna@example.com"],
        ),
        ("vk", ["200001", "200001", "-5"], ["200001", "-5"]),
    ],
)
def test_written_forms_of_one_address_are_one_contact(channel: str, addresses: list[str], left: list[str]) -> None:
    assert without_duplicates(channel, addresses) == left


@pytest.mark.parametrize(
    "recipients",
    [
        [{"id": 1, "contacts": {"sms": WRITTEN}}],
        [{"id": 1, "contacts": {"sms": number}} for number in WRITTEN],
        [f"1=sms:{number}" for number in WRITTEN],
        [f"sms:{number}" for number in WRITTEN],
        ["sms:8 (960) 000-10-00", {"id": 1, "contacts": {"sms": WRITTEN}}],
    ],
)
async def test_one_person_gets_one_sms(api: Api, courier: Couriers, recipients: list[Any]) -> None:
    """Regression: only equal texts were recognised, so one person got two SMS."""
    sms = await courier("sms")
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=recipients, channels=["sms"]))
    assert made.json["recipients"] == 1

    async def is_finished() -> bool:
        return bool((await api.call("GET", made.headers["Location"])).json["state"] == "finished")

    await until(is_finished)
    assert sms.addresses == ["+79600001000"]


async def test_two_persons_with_one_number_both_get_their_message(api: Api, courier: Couriers) -> None:
    sms = await courier("sms")
    people = [{"id": number, "contacts": {"sms": written}} for number, written in enumerate(WRITTEN[:2], 1)]
    await api.call("POST", "/v1/deliveries", delivery_body(recipients=people, channels=["sms"]))
    await until(lambda: len(sms.attempted) == 2)
