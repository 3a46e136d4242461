"""What a token service may answer in place of a token: the sign-in is refused with one line in the log, and tokens that
were stored before stay.
"""

import asyncio
import json
import logging
from collections.abc import Callable

import pytest
from aiohttp import web
from msgspec.structs import replace

from core.errors import Refused
from providers.sign_in import SignIn, Tokens
from providers.web_request import ServiceUnavailable
from tests.providers.sign_in.oauth_server import BROWSER, agree
from tests.providers.sign_in.test_sign_in import ANNA, Installation, installation

__all__ = ["installation"]

TOKEN = {"access_token": "new", "token_type": "bearer"}


def text(content: str, status: int = 200, kind: str = "application/json") -> Callable[[], web.StreamResponse]:
    return lambda: web.Response(text=content, status=status, content_type=kind)


def answer(**fields: object) -> Callable[[], web.StreamResponse]:
    return text(json.dumps(fields))


ODD = {
    "a page": text("<html>Maintenance</html>", kind="text/html"),
    "a page with an error": text("<html>Not found</html>", 404, "text/html"),
    "nothing": text(""),
    "a list": text("[1, 2]"),
    "a very deep list": text("[" * 60_000),
    "too much": text(json.dumps({**TOKEN, "more": "x" * 70_000})),
    "an unknown client": text('{"error": "invalid_client"}', 401),
    "an unknown error": text('{"error": "a\\nline <b>", "error_description": "secret"}', 400),
    "no token": answer(token_type="bearer"),
    "an empty token": answer(access_token="", token_type="bearer"),
    "a token that is a number": answer(access_token=5, token_type="bearer"),
    "a refresh token that is a list": answer(**TOKEN, refresh_token=["a"]),
    "a lifetime that has ended": answer(**TOKEN, expires_in=-5),
    "an endless lifetime": text('{"access_token": "new", "token_type": "bearer", "expires_in": Infinity}'),
    "a lifetime without a number": text('{"access_token": "new", "token_type": "bearer", "expires_in": NaN}'),
    "a lifetime of ages": answer(**TOKEN, expires_in=10**300),
    "a lifetime in words": answer(**TOKEN, expires_in="an hour"),
    "a lifetime that is a list": answer(**TOKEN, expires_in=[3600]),
    "a failure": text("", 500),
    "too many requests": text("", 429),
}


@pytest.fixture(params=list(ODD))
async def odd(request: pytest.FixtureRequest, installation: Installation) -> Installation:
    """Anna has signed in before; her token has to be refreshed. From now on the service answers oddly."""
    installation.oauth.lifetime = 30
    await installation.signed_in()
    installation.oauth.odd = ODD[request.param]
    return installation


async def test_a_sign_in_with_an_odd_answer_is_refused_with_one_line_in_the_log(
    odd: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(Refused) as refusal:
        await odd.signed_in()
    assert refusal.value.code == "SIGN_IN_FAILED"
    (line,) = [one.getMessage() for one in caplog.records if one.name.startswith("providers.sign_in")]
    assert line.startswith("a sign-in to vacancies has failed: the ")
    assert "\n" not in line
    assert "secret" not in line


async def test_a_refresh_with_an_odd_answer_leaves_the_tokens(odd: Installation) -> None:
    with pytest.raises(ServiceUnavailable):
        await odd.tokens.access_token(*ANNA)
    odd.oauth.odd = None
    assert (await odd.tokens.access_token(*ANNA)).startswith("access-")


async def test_secrets_do_not_follow_a_redirect(installation: Installation) -> None:
    """Neither with the method POST (307), nor as a page (302)."""
    for status in (301, 302, 303, 307, 308):
        address = f"{installation.oauth.url}/elsewhere"
        installation.oauth.odd = lambda: web.Response(status=status, headers={"Location": address})  # noqa: B023
        with pytest.raises(Refused) as refusal:
            await installation.signed_in()
        assert refusal.value.code == "SIGN_IN_FAILED"
    assert installation.oauth.elsewhere == []


@pytest.mark.parametrize("lifetime", ["3600", 3600.5, 0, None])
async def test_a_lifetime_may_be_text_or_missing(installation: Installation, lifetime: object) -> None:
    installation.oauth.odd = answer(**TOKEN, expires_in=lifetime)
    await installation.signed_in()
    assert await installation.tokens.access_token(*ANNA) == "new"


async def test_an_answer_in_many_parts_is_read_to_its_end(installation: Installation) -> None:
    installation.oauth.parts = 7
    await installation.signed_in()
    assert await installation.tokens.access_token(*ANNA) == "access-1"


async def test_a_service_that_does_not_answer_in_time_is_not_waited_for(installation: Installation) -> None:
    services = {name: replace(one, timeout_seconds=0.5) for name, one in installation.services.items()}
    tokens = Tokens(installation.store, installation.vault, services)
    sign_in = SignIn(installation.store, installation.vault, tokens, services, "https://ada.example")
    query = await agree(sign_in, await sign_in.begin(*ANNA))
    installation.oauth.hold()
    with pytest.raises(Refused) as refusal:
        await asyncio.wait_for(sign_in.finish(query, BROWSER), 10)
    assert refusal.value.code == "SIGN_IN_FAILED"
    installation.oauth.release()


async def test_a_service_that_is_not_there_refuses_the_sign_in(installation: Installation) -> None:
    query = await agree(installation.sign_in, await installation.sign_in.begin(*ANNA))
    sign_in = installation.sign_in
    await installation.oauth.stop()
    with pytest.raises(Refused) as refusal:
        await sign_in.finish(query, BROWSER)
    assert refusal.value.code == "SIGN_IN_FAILED"
