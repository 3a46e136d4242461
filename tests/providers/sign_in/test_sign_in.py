"""Signing in with OAuth 2 and PKCE against a strict service; tokens at rest; one refresh at a time."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from core.errors import Invalid, SetupError
from core.redis.store import Store
from providers.sign_in import Invitation, Service, SignedIn, SignIn, SignInExpired, Tokens, Vault
from providers.sign_in.services import checked, read_services
from providers.sign_in.stored import forget, new_key, services_of, tokens_key
from providers.web_request import ServiceUnavailable
from tests.providers.sign_in.oauth_server import BROWSER, SECRET, OAuthServer, agree, sign_in_at
from tests.support.servers import Server
from tests.support.waiting import until


@pytest.fixture(params=[1, 16])
def shards(request: pytest.FixtureRequest) -> int:
    return int(request.param)


ANNA = ("university", "vacancies", "1")
KEY = new_key()


@dataclass
class Installation:
    store: Store
    oauth: OAuthServer
    vault: Vault

    @property
    def services(self) -> dict[str, Service]:
        url = self.oauth.url
        addresses = f"{url}/authorize", f"{url}/token"
        service = Service(*addresses, "ada", SECRET, ("read", "apply"), revoke_url=f"{url}/revoke")
        return dict(checked({"vacancies": service}))

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.store, self.vault, self.services)

    @property
    def sign_in(self) -> SignIn:
        return SignIn(self.store, self.vault, self.tokens, self.services, "https://ada.example/")

    async def agree(self, address: str) -> str:
        """The user agrees; returns the query string of the callback."""
        return await agree(self.sign_in, address)

    async def signed_in(self) -> SignedIn:
        return await sign_in_at(self.sign_in, await self.sign_in.begin(*ANNA))

    async def confirmed(self) -> str:
        """The address of the service to which the user is led."""
        return await self.sign_in.confirm(link_of(await self.sign_in.begin(*ANNA)), BROWSER)


def link_of(address: str) -> str:
    return address.rpartition("/")[2]


def state_of(address: str) -> str:
    return parse_qs(urlsplit(address).query)["state"][0]


@pytest.fixture
async def installation(server: Server, shards: int) -> AsyncIterator[Installation]:
    oauth = OAuthServer()
    await oauth.start()
    store = await Store.open(server.url, shards)
    yield Installation(store, oauth, Vault([KEY]))
    await store.close()
    await oauth.stop()


async def test_a_user_signs_in_and_the_tokens_are_encrypted_at_rest(installation: Installation) -> None:
    address = await installation.confirmed()
    assert parse_qs(urlsplit(address).query)["redirect_uri"] == ["https://ada.example/v1/sign-in/callback"]
    assert parse_qs(urlsplit(address).query)["scope"] == ["read apply"]
    assert await installation.signed_in() == SignedIn(*ANNA)
    assert await installation.tokens.access_token(*ANNA) == "access-1"
    stored = await installation.store.command("HGETALL", tokens_key(installation.store, "university", "1"))
    assert list(stored) == ["vacancies"]
    assert "access-1" not in str(stored)


async def test_a_callback_is_accepted_once(installation: Installation) -> None:
    query = await installation.agree(await installation.sign_in.begin(*ANNA))
    await installation.sign_in.finish(query, BROWSER)
    with pytest.raises(Invalid) as refusal:
        await installation.sign_in.finish(query, BROWSER)
    assert refusal.value.code == "SIGN_IN_UNKNOWN"


@pytest.mark.parametrize("query", ["", "code=stolen", "code=stolen&state=wrong", "state=", "%%%"])
async def test_a_stolen_callback_is_refused(installation: Installation, query: str) -> None:
    await installation.sign_in.begin(*ANNA)
    with pytest.raises(Invalid) as refusal:
        await installation.sign_in.finish(query, BROWSER)
    assert refusal.value.code == "SIGN_IN_UNKNOWN"
    with pytest.raises(SignInExpired):
        await installation.tokens.access_token(*ANNA)


async def test_a_user_who_does_not_agree_is_not_signed_in(installation: Installation) -> None:
    state = state_of(await installation.confirmed())
    with pytest.raises(Invalid, match="access_denied") as refusal:
        await installation.sign_in.finish(f"error=access_denied&state={state}", BROWSER)
    assert refusal.value.code == "SIGN_IN_REFUSED"


async def test_a_code_that_was_used_before_is_refused(installation: Installation) -> None:
    query = await installation.agree(await installation.sign_in.begin(*ANNA))
    code = parse_qs(query)["code"][0]
    await installation.sign_in.finish(query, BROWSER)
    state = state_of(await installation.confirmed())
    with pytest.raises(Invalid) as refusal:
        await installation.sign_in.finish(f"code={code}&state={state}", BROWSER)
    assert refusal.value.code == "SIGN_IN_REFUSED"


async def test_a_callback_is_accepted_only_in_the_browser_that_began_the_sign_in(installation: Installation) -> None:
    query = await installation.agree(await installation.sign_in.begin(*ANNA))
    for other in ("", "another browser"):
        with pytest.raises(Invalid) as refusal:
            await installation.sign_in.finish(query, other)
        assert refusal.value.code == "SIGN_IN_OTHER_BROWSER"
    assert not await installation.tokens.exist(*ANNA)
    assert await installation.sign_in.finish(query, BROWSER) == SignedIn(*ANNA)


async def test_an_address_shows_whom_it_signs_in_and_is_confirmed_once(installation: Installation) -> None:
    address = await installation.sign_in.begin(*ANNA, "Anna Petrova")
    assert address.startswith("https://ada.example/v1/sign-in/link/")
    for _ in range(2):
        assert await installation.sign_in.find(link_of(address)) == Invitation(SignedIn(*ANNA), "Anna Petrova")
    await installation.sign_in.confirm(link_of(address), BROWSER)
    for again in (installation.sign_in.find(link_of(address)), installation.sign_in.confirm(link_of(address), BROWSER)):
        with pytest.raises(Invalid) as refusal:
            await again
        assert refusal.value.code == "SIGN_IN_UNKNOWN"


async def test_a_user_signs_out_of_one_service(installation: Installation) -> None:
    await installation.signed_in()
    await installation.tokens.write("university", "other", "1", {"access_token": "x"})
    await installation.tokens.write("university", "vacancies", "2", {"access_token": "x"})
    assert await services_of(installation.store, "university", "1") == ["other", "vacancies"]
    assert list(await forget(installation.store, "university", "1", "vacancies")) == ["vacancies"]
    assert await forget(installation.store, "university", "1", "vacancies") == {}
    assert await services_of(installation.store, "university", "1") == ["other"]
    assert await services_of(installation.store, "university", "2") == ["vacancies"]


async def test_a_sign_in_that_has_begun_is_not_finished_after_the_user_was_forgotten(
    installation: Installation,
) -> None:
    address, query = (
        await installation.sign_in.begin(*ANNA),
        await installation.agree(await installation.sign_in.begin(*ANNA)),
    )
    await installation.signed_in()
    assert await forget(installation.store, "university", "1")
    assert await services_of(installation.store, "university", "1") == []
    for step in (installation.sign_in.confirm(link_of(address), BROWSER), installation.sign_in.finish(query, BROWSER)):
        with pytest.raises(Invalid) as refusal:
            await step
        assert refusal.value.code == "SIGN_IN_UNKNOWN"
    assert await installation.signed_in() == SignedIn(*ANNA), "a sign-in that begins later is finished"


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_sign_out_and_a_new_sign_in_during_a_refresh_stay(installation: Installation, is_refused: bool) -> None:
    """The service has answered before, with new tokens or with a refusal, and the answer is late."""
    installation.oauth.lifetime = 30
    for signs_in_again in (False, True):
        await installation.signed_in()
        installation.oauth.hold()
        if is_refused:
            installation.oauth.revoke_everything()
        refreshing = asyncio.create_task(installation.tokens.access_token(*ANNA))
        await until(lambda: installation.oauth.waiting > 0)
        await forget(installation.store, "university", "1", "vacancies")
        if signs_in_again:
            await installation.tokens.write(*ANNA, {"access_token": "new"})
        installation.oauth.release()
        if signs_in_again:
            assert await refreshing == "new"
        else:
            with pytest.raises(SignInExpired):
                await refreshing
        assert await installation.tokens.exist(*ANNA) is signs_in_again


async def test_tokens_are_refreshed_once_by_all_processes_together(installation: Installation) -> None:
    installation.oauth.lifetime = 30
    await installation.signed_in()
    installation.oauth.lifetime = 3600
    found = await asyncio.gather(*(installation.tokens.access_token(*ANNA) for _ in range(20)))
    assert set(found) == {"access-2"}
    assert installation.oauth.calls["refresh_token"] == 1


async def test_a_refresh_that_is_refused_ends_the_sign_in(installation: Installation) -> None:
    installation.oauth.lifetime = 30
    await installation.signed_in()
    installation.oauth.revoke_everything()
    for _ in range(2):
        with pytest.raises(SignInExpired):
            await installation.tokens.access_token(*ANNA)
    assert installation.oauth.calls["refresh_token"] == 1
    installation.oauth.lifetime = 3600
    await installation.signed_in()
    assert await installation.tokens.access_token(*ANNA)


@pytest.mark.parametrize("status", [500, 429, 403])
async def test_a_service_that_is_down_leaves_the_tokens(installation: Installation, status: int) -> None:
    installation.oauth.lifetime = 30
    await installation.signed_in()
    installation.oauth.status = status
    with pytest.raises(ServiceUnavailable):
        await installation.tokens.access_token(*ANNA)
    installation.oauth.status = 200
    assert await installation.tokens.access_token(*ANNA) == "access-3"


async def test_tokens_are_readable_after_a_new_key_was_put_in_front(installation: Installation) -> None:
    await installation.signed_in()
    installation.vault = Vault([new_key(), KEY])
    assert await installation.tokens.access_token(*ANNA) == "access-1"


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(SetupError, match="ADA_SECRET_KEY"):
        Vault(["password"])


def test_services_are_read_from_a_file_with_variables(tmp_path: Path) -> None:
    file = tmp_path / "services.yaml"
    file.write_text(
        "vacancies: {authorize_url: 'https://a', token_url: 'https://t', client_id: ada, client_secret: '${S}'}"
    )
    assert read_services(file, {"S": "hidden"})["vacancies"].client_secret == "hidden"
    with pytest.raises(SetupError, match="needs S"):
        read_services(file, {})
    file.write_text("vacancies: {authorize_url: 'http://a.example', token_url: 'https://t', client_id: ada}")
    with pytest.raises(SetupError, match="https"):
        read_services(file, {})
    addresses = "authorize_url: 'https://a', token_url: 'https://t', revoke_url: 'http://r.example'"
    file.write_text(f"vacancies: {{{addresses}, client_id: ada}}")
    with pytest.raises(SetupError, match=r"https://, not http://r\.example"):
        read_services(file, {})
    file.write_text("vacancies: {token_url: 'https://t'}")
    with pytest.raises(SetupError, match="authorize_url"):
        read_services(file, {})
    file.write_text("vacancies: {client_secret: '${S}', token_url: [}")
    with pytest.raises(SetupError, match="is not YAML: ") as refused:
        read_services(file, {"S": "hidden"})
    assert "hidden" not in str(refused.value)
    with pytest.raises(SetupError):
        read_services(tmp_path / "missing.yaml")
