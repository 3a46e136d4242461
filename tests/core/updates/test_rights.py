"""An event has the rights of its person, but never more than the API key with which it was handed in (I21)."""

import pytest

from core.admission.api_keys import SCOPES
from core.updates.rights import API, handed_in, origin_of, permits

EVENT = {"channel": "telegram-bot", "user_id": 1}


@pytest.mark.parametrize("scope", sorted(SCOPES))
def test_an_event_of_a_provider_is_limited_by_no_key(scope: str) -> None:
    assert permits(EVENT, scope)
    assert origin_of(EVENT) == "telegram-bot"


@pytest.mark.parametrize("scope", sorted(SCOPES))
def test_an_event_that_was_handed_in_has_the_scopes_of_the_key(scope: str) -> None:
    assert permits(handed_in(EVENT, [scope]), scope)
    assert origin_of(handed_in(EVENT, [scope])) == API
    others = SCOPES - {scope, "admin", "operator"}
    assert not permits(handed_in(EVENT, others), scope)


def test_admin_includes_all_scopes_but_those_of_the_installation() -> None:
    assert {scope for scope in SCOPES if permits(handed_in(EVENT, ["admin"]), scope)} == SCOPES - {
        "operator",
        "inspect",
        "scim",
    }
    assert {scope for scope in SCOPES if permits(handed_in(EVENT, ["operator"]), scope)} == SCOPES - {"scim"}


def test_an_event_without_the_scopes_of_its_key_permits_nothing() -> None:
    assert not any(permits({**EVENT, "origin": API}, scope) for scope in SCOPES)
