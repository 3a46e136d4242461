"""Strategies over HTTP (D-36)."""

import pytest

from core.model.states import Reason
from couriers.sending.interface import Rejected
from delivery.http.fields import read_duration, write_duration
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_deliveries import finished

CHANNELS = ["telegram", "sms"]
PEOPLE = [{"id": n, "contacts": {"telegram": f"10000{n}", "sms": f"+7999000000{n}"}} for n in (1, 2)]


async def test_the_next_channel_is_tried_after_a_failure_and_the_history_shows_the_switch(
    api: Api, courier: Couriers
) -> None:
    await courier("telegram", lambda message: Rejected(Reason.PRIVACY))
    await courier("sms")
    body = delivery_body(recipients=PEOPLE, channels=CHANNELS, strategy="first", wait="PT1H30M")
    made = await api.call("POST", "/v1/deliveries", body)
    history = await finished(api, made.headers["Location"])
    assert (history["strategy"], history["wait"], history["verdict"]) == ("first", "PT1H30M", "all_reached")
    for recipient in history["recipients"]:
        first, second = recipient["outcomes"]["telegram"], recipient["outcomes"]["sms"]
        assert (first["status"], first["reason"], second["status"]) == ("failed", "privacy", "sent")
        assert first["at"] <= second["at"]
        assert recipient["received_in"] == ["sms"]


async def test_a_recipient_reached_earlier_is_skipped_in_the_later_channel(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    body = delivery_body(recipients=PEOPLE, channels=CHANNELS, strategy="first")
    made = await api.call("POST", "/v1/deliveries", body)
    history = await finished(api, made.headers["Location"])
    assert (history["wait"], history["channels"]["sms"]) == (None, {"state": "reported", "skipped": 2})
    assert history["recipients"][0]["outcomes"]["sms"]["reason"] == "reached_elsewhere"


async def test_without_a_strategy_all_channels_are_used(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    await courier("sms")
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=PEOPLE, channels=CHANNELS))
    history = await finished(api, made.headers["Location"])
    assert (history["strategy"], history["counts"]["sent"]) == ("all", 4)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT2M", 120), ("PT0.5S", 0.5), ("P1DT1H", 90_000), ("P1W", 604_800), ("PT90M", 5400), ("PT1H1M1S", 3661)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    duration = read_duration(text)
    assert duration is not None
    assert duration.total_seconds() == seconds
    assert read_duration(write_duration(duration)) == duration


@pytest.mark.parametrize("text", ["", "P", "PT", "2M", "P1M", "P1Y", "PT-2M", "PT2M ", "pt2m", "P1DT", "2 minutes"])
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    assert read_duration(text) is None


@pytest.mark.parametrize("wait", ["P46061431W846595959D", "P99999999W99999999D", "PT999999999H"])
async def test_a_wait_beyond_any_date_is_refused(api: Api, wait: str) -> None:
    """The first one was an internal error, found by a generator of valid requests."""
    refused = await api.call("POST", "/v1/deliveries", delivery_body(strategy="first", wait=wait))
    assert refused.status == 400, refused.body
