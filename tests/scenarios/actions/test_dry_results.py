"""A dry run returns what a server returns: each action is executed on a real server, too."""

from typing import Any

import pytest

from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP
from tests.scenarios.actions.conftest import IN_GROUP, PRIVATE, Bench

WRITTEN = {**PRIVATE, "first_name": "Анна", "username": "anna_k", "event_text": "привет"}


@pytest.fixture
async def club(bench: Bench) -> Bench:
    """A group that Boris administers, with Anna in it, a person that the bot has met."""
    bench.bot_api.server.joining.set_up(GROUP, title="Клуб", username="club", creator=BORIS)
    bench.bot_api.server.joining.join(ANNA, GROUP)
    await bench.people.met(WRITTEN)
    return bench


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            {"restrict_username": "@anna_k", "duration": "1h 30m"},
            {"restrict_username": "@anna_k", "duration_seconds": 5400},
        ),
        ({"restrict_user_id": ANNA}, {"restrict_user_id": ANNA, "restrict_username": ""}),
        ({"restrict_user_id": ANNA, "duration": "5s"}, {"duration_seconds": 30}),
        ({"restrict_user_id": ANNA, "duration": "1h", "can_send_messages": True}, {"restrict_user_id": ANNA}),
    ],
)
async def test_restrict_echoes_whom_and_for_how_long(
    club: Bench, written: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = await club.is_as_dry({"type": "restrict", **written}, IN_GROUP)
    assert found.items() >= expected.items()


async def test_actions_that_cannot_succeed_fail_for_the_same_reason(club: Bench) -> None:
    for fields in (
        {"type": "restrict"},
        {"type": "invite_link", "cleanup": True},
        {"type": "request_management", "operation": "details", "event_text": "x"},
        {"type": "restrict", "restrict_user_id": ANNA, "duration": "soon"},
    ):
        assert (await club.error(fields, IN_GROUP)) in str(club.dry(fields, IN_GROUP).error)


async def test_requests_and_what_was_asked_are_texts(club: Bench) -> None:
    assert (await club.is_as_dry({"type": "request", "request_name": "club"}, WRITTEN))["request_text"] == "привет"
    listed = await club.is_as_dry({"type": "request_management", "request_name": "club"}, WRITTEN)
    assert "club" in listed["text"]
    assert "Анна" in listed["text"]
    shown = await club.is_as_dry({"type": "request_management", "operation": "details", "event_text": "1"}, WRITTEN)
    assert shown["text"].startswith("<b>#1</b>")


@pytest.mark.parametrize(
    "written", [{"expire": "1d"}, {"permanent": True}, {"target_user_id": "any"}, {"promo_code": "A1"}]
)
async def test_promo_codes_have_the_name_the_code_and_the_dates_that_are_written(
    club: Bench, written: dict[str, Any]
) -> None:
    fields = {"type": "create_promo", "promo_name": "sale", "promo_code": "SALE5", **written}
    made = await club.is_as_dry(fields, WRITTEN)
    assert (made["promo_name"], made["promo_code"]) == ("sale", fields["promo_code"])
    check = {"type": "check_promo", "promo_code": made["promo_code"]}
    checked, dry = await club.results(check, WRITTEN), club.dry(check, WRITTEN).returned.results
    assert checked["promo_available"] is dry["promo_available"] is True
    assert dry.keys() <= checked.keys()
    await club.is_as_dry({"type": "promo_management"}, WRITTEN)
    await club.is_as_dry({"type": "modify_promo", "promo_id": 1, **written}, WRITTEN, run="2")


async def test_links_and_what_is_cancelled_have_the_same_form(club: Bench) -> None:
    assert (await club.is_as_dry({"type": "invite_link"}, IN_GROUP))["invite_link"].startswith("https://t.me/+")
    await club.is_as_dry({"type": "cancel", "tag": "a"}, WRITTEN)
    await club.is_as_dry({"type": "user", "user_state": "a"}, WRITTEN)
