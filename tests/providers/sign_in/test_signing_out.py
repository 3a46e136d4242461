"""A sign-out revokes the tokens at the service (RFC 7009); a service that fails does not stop it."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from providers.sign_in import SignIn, SignInExpired, Tokens, Vault
from providers.sign_in.sign_in import sign_out
from providers.sign_in.stored import new_key, services_of
from tests.providers.sign_in.test_sign_in import ANNA, Installation, installation
from tests.support.waiting import until

__all__ = ["installation"]

PERSON = ("university", "1")


async def signs_out(installation: Installation, service: str = "vacancies", **changes: Any) -> bool:
    """Sign Anna out; `changes`: of what the installation knows of the service."""
    services = {name: replace(one, **changes) for name, one in installation.services.items()}
    tokens = Tokens(installation.store, installation.vault, services)
    sign_in = SignIn(installation.store, installation.vault, tokens, services, "https://ada.example")
    return await sign_out(installation.store, sign_in, *PERSON, service)


@pytest.mark.parametrize("service", ["vacancies", ""])
async def test_a_sign_out_revokes_the_refresh_token_at_the_service(installation: Installation, service: str) -> None:
    await installation.signed_in()
    (refresh,) = installation.oauth.refresh_tokens
    assert await signs_out(installation, service)
    assert installation.oauth.revoked == [(refresh, "refresh_token")]
    assert installation.oauth.refresh_tokens == set()
    assert not await signs_out(installation, service)
    assert len(installation.oauth.revoked) == 1


async def test_without_a_refresh_token_the_access_token_is_revoked(installation: Installation) -> None:
    await installation.tokens.write(*ANNA, {"access_token": "short"})
    assert await signs_out(installation)
    assert installation.oauth.revoked == [("short", "access_token")]


async def test_a_sign_out_of_all_services_revokes_at_those_that_can(installation: Installation) -> None:
    for name in ("vacancies", "unknown"):
        await installation.tokens.write("university", name, "1", {"access_token": f"of {name}"})
    assert await signs_out(installation, "")
    assert installation.oauth.revoked == [("of vacancies", "access_token")]
    assert await services_of(installation.store, *PERSON) == []


async def test_a_service_without_an_address_for_it_is_not_called(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    await installation.signed_in()
    assert await signs_out(installation, revoke_url="")
    assert (installation.oauth.revoked, caplog.messages) == ([], [])


@pytest.mark.parametrize("failure", ["status", "client", "redirect", "silence", "absence", "key"])
async def test_a_sign_out_succeeds_although_the_revocation_fails(
    installation: Installation, caplog: pytest.LogCaptureFixture, failure: str
) -> None:
    await installation.signed_in()
    (refresh,) = installation.oauth.refresh_tokens
    changes: dict[str, Any] = {}
    match failure:
        case "status":
            installation.oauth.status = 503
        case "client":
            changes["client_secret"] = "wrong"
        case "redirect":
            headers = {"Location": f"{installation.oauth.url}/elsewhere"}
            installation.oauth.odd = lambda: web.Response(status=307, headers=headers)
        case "silence":
            installation.oauth.hold()
            changes["timeout_seconds"] = 0.1
        case "absence":
            changes["revoke_url"] = "http://127.0.0.1:9/"
        case "key":
            installation.vault = Vault([new_key()])
    assert await asyncio.wait_for(signs_out(installation, **changes), 20)
    installation.oauth.release()
    assert await services_of(installation.store, *PERSON) == []
    (line,) = caplog.messages
    assert line.startswith("a token of vacancies was deleted here, but it was not revoked there: ")
    assert refresh not in line
    assert installation.oauth.elsewhere == []


@pytest.mark.parametrize("signs_in_again", [False, True])
async def test_the_token_of_a_refresh_during_a_sign_out_is_revoked(
    installation: Installation, signs_in_again: bool
) -> None:
    """The service has exchanged the refresh token that the sign-out revokes. Many services know one grant of a person,
    so it is not revoked after a new sign-in.
    """
    installation.oauth.lifetime = 30
    await installation.signed_in()
    installation.oauth.hold()
    refreshing = asyncio.create_task(installation.tokens.access_token(*ANNA))
    await until(lambda: installation.oauth.waiting > 0)
    (exchanged,) = installation.oauth.refresh_tokens
    signing_out = asyncio.create_task(signs_out(installation))
    await until(lambda: is_signed_out(installation))
    if signs_in_again:
        await installation.tokens.write(*ANNA, {"access_token": "new"})
    installation.oauth.release()
    await signing_out
    if signs_in_again:
        assert await refreshing == "new"
    else:
        with pytest.raises(SignInExpired):
            await refreshing
    assert ((exchanged, "refresh_token") in installation.oauth.revoked) is not signs_in_again


async def is_signed_out(installation: Installation) -> bool:
    return not await installation.tokens.exist(*ANNA)
