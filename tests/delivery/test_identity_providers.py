"""Signing in to the console at an identity provider, with tokens of our own that no provider should sign."""

import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import ClientSession, CookieJar
from joserfc import jwt
from joserfc.jwk import OctKey
from yarl import URL

from cli.commands.start.people_findings import check_identity_providers
from cli.processes.embedded_valkey import free_port
from cli.settings.parsing import WebAddress
from cli.settings.settings import Settings
from core.model.people import User
from core.redis.store import Store
from core.sessions.outside_accounts import external_id
from delivery.app import build
from delivery.http.context import ApiServices
from delivery.http.options import Options
from delivery.http.server import listening
from providers.oidc import issuer as issuer_module
from providers.oidc.issuer import read_keys
from providers.oidc.settings import OidcProvider, RoleRule, read_providers
from providers.oidc.sign_in import OidcSignIn, role_of
from tests.delivery.conftest import Api, ApiResponse, read
from tests.providers.oidc.signing_provider import CLIENT, SECRET, SigningProvider, new_key, unsigned
from tests.support.browser import Browser
from tests.support.outbox import Outbox
from tests.support.serving import serving
from tests.support.waiting import until

SAME = {"Sec-Fetch-Site": "same-origin"}
PATH = "/v1/sessions/providers"
DONE = "/#/sign-in?done=1"
RULE = RoleRule("realm.roles", {"office": "staff", "teachers": "trainer"})
ANNA = {"email": "anna@example.org", "email_verified": True}


@pytest.fixture
async def provider() -> AsyncIterator[SigningProvider]:
    async with serving(SigningProvider(dict(ANNA))) as one, serving(SigningProvider()) as other:
        one.other = other  # type: ignore[attr-defined]
        yield one


@pytest.fixture
def services(services: ApiServices, store: Store, provider: SigningProvider, monkeypatch: Any) -> ApiServices:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    known = {
        "university": OidcProvider(provider.url, CLIENT, SECRET, "University", roles=RULE),
        "school": OidcProvider(provider.other.url, CLIENT, tenant="school"),  # type: ignore[attr-defined]
    }
    return replace(services, identity_providers=OidcSignIn(store, known, "http://ada.example"))


@pytest.fixture
async def anna(services: ApiServices) -> User:
    return await services.core.directory.users.create("default", User(7, "Anna", "anna@example.org"))


class Visitor:
    """A browser of its own."""

    def __init__(self, api: Api, session: ClientSession) -> None:
        self.api, self.session = api, session

    async def get(self, path: str, **query: str) -> ApiResponse:
        address = f"{self.api.url}{path}?{urlencode(query)}"
        async with self.session.get(address, allow_redirects=False, headers={"Accept": "text/html"}) as response:
            return await read(response)

    async def begin(self, provider: SigningProvider, name: str = "university") -> dict[str, str]:
        """Go to the provider and agree there; returns the query of the callback."""
        begun = await self.get(f"{PATH}/{name}")
        assert begun.status == 303, begun
        return provider.agree(begun.headers["Location"])

    async def finish(self, query: dict[str, str], name: str = "university") -> str:
        """Come back; returns where the console is opened."""
        response = await self.get(f"{PATH}/{name}/callback", **query)
        assert (response.status, response.headers["Cache-Control"]) == (303, "no-store")
        return response.headers["Location"]

    async def signs_in(self, provider: SigningProvider) -> str:
        return await self.finish(await self.begin(provider))

    async def me(self) -> ApiResponse:
        async with self.session.get(f"{self.api.url}/v1/me") as response:
            return await read(response)

    async def post(self, path: str, body: object) -> ApiResponse:
        async with self.session.post(self.api.url + path, json=body, headers=SAME) as response:
            return await read(response)


def problem(code: str) -> str:
    return f"/#/sign-in?problem={code}"


@pytest.fixture
async def visitor(api: Api) -> AsyncIterator[Visitor]:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        yield Visitor(api, session)


@pytest.fixture
async def stranger(api: Api) -> AsyncIterator[Visitor]:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        yield Visitor(api, session)


@pytest.mark.usefixtures("anna")
async def test_a_verified_address_binds_an_account_once_and_then_issuer_and_subject_decide(
    api: Api, visitor: Visitor, stranger: Visitor, provider: SigningProvider
) -> None:
    assert (await api.call("GET", PATH)).json["providers"][0] == {"name": "university", "title": "University"}
    assert await visitor.signs_in(provider) == DONE
    assert (await visitor.me()).json["id"] == 7
    asked = provider.tokens_asked[0]
    assert (asked["redirect_uri"], len(asked["code_verifier"])) == (f"http://ada.example{PATH}/university/callback", 43)
    provider.claims = {"email": "other@example.org", "email_verified": True}
    assert await stranger.signs_in(provider) == DONE
    assert (await stranger.me()).json["id"] == 7, "the address of the account has no part in it any more"


UNVERIFIED: list[dict[str, Any]] = [
        {"email_verified": False}, {"email_verified": "true"}, {"email_verified": 1}, {"email_verified": None},
        {"email": "nobody@example.org"}, {"email": ["anna@example.org"]}, {"email": None, "preferred_username": "7"},
]  # fmt: skip


@pytest.mark.usefixtures("anna")
async def test_nothing_but_a_verified_address_of_the_directory_binds_an_account(
    visitor: Visitor, provider: SigningProvider
) -> None:
    for claims in UNVERIFIED:
        provider.claims = {**ANNA, **claims}
        assert await visitor.signs_in(provider) == "/#/sign-in?bind=1", claims
        assert (await visitor.me()).status == 401


@pytest.mark.usefixtures("anna")
async def test_an_address_that_went_to_another_account_does_not_lead_to_its_first_person(
    visitor: Visitor, stranger: Visitor, provider: SigningProvider
) -> None:
    await visitor.signs_in(provider)
    provider.claims["sub"] = "another"
    assert await stranger.signs_in(provider) == "/#/sign-in?bind=1"


async def code_of(visitor: Visitor, outbox: Outbox) -> dict[str, Any]:
    before = len(outbox.codes)
    sent = await visitor.post("/v1/sessions/codes", {"email": "anna@example.org"})
    await until(lambda: len(outbox.codes) > before)
    return {"code_id": sent.json["code_id"], "code": outbox.codes[-1]}


@pytest.mark.usefixtures("anna")
async def test_a_mailed_code_binds_an_account_only_in_the_browser_that_came_with_it(
    visitor: Visitor, stranger: Visitor, provider: SigningProvider, outbox: Outbox, services: ApiServices
) -> None:
    """Otherwise whoever sends a link to a person would get its account bound to that person."""
    provider.claims = {}
    assert await visitor.signs_in(provider) == "/#/sign-in?bind=1"
    code = await code_of(stranger, outbox)
    refused = await stranger.post("/v1/sessions", {**code, "bind_account": True})
    assert (refused.status, refused.code) == (422, "SIGN_IN_UNKNOWN")
    code = await code_of(visitor, outbox)
    assert (await visitor.post("/v1/sessions", {**code, "bind_account": True})).status == 201
    (anna,) = await services.core.directory.users.lookup("default", [7])
    assert anna is not None
    assert list(anna.external_ids) == [external_id(provider.url, "anna")]
    assert await visitor.signs_in(provider) == DONE
    other = {"code_id": "0.x", "code": "1", "bind_account": True}
    assert (await visitor.post("/v1/sessions", other)).code == "CODE_WRONG"


def claims_of(provider: SigningProvider, **more: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"iss": provider.url, "aud": CLIENT, "sub": "anna", "iat": now, "exp": now + 300, **ANNA, **more}


TAMPERED: list[dict[str, Any]] = [
    {"claims": {"iss": "https://evil.example"}},
    {"claims": {"iss": None}},
    {"claims": {"aud": "another"}},
    {"claims": {"aud": None}},
    {"claims": {"aud": [CLIENT, "another"]}},
    {"claims": {"aud": [CLIENT, "another"], "azp": "another"}},
    {"claims": {"azp": "another"}},
    {"claims": {"nonce": "of another sign-in"}},
    {"claims": {"nonce": None}},
    {"claims": {"exp": 1_000_000_000}},
    {"claims": {"exp": None}},
    {"claims": {"exp": "tomorrow"}},
    {"claims": {"iat": None}},
    {"claims": {"nbf": 4_000_000_000}},
    {"claims": {"sub": ""}},
    {"claims": {"sub": None}},
    {"claims": {"sub": "a" * 256}},
    {"claims": {"sub": 7}},
    {"signs_with": new_key("first")},
    {"header": {"kid": "unknown"}},
    {"header": {"kid": "unknown", "jku": "https://evil.example/keys"}},
    {"id_token": "no.token.here"},
    {"id_token": "{}"},
]


@pytest.mark.usefixtures("anna")
async def test_a_token_that_the_provider_has_not_signed_for_this_sign_in_signs_nobody_in(
    visitor: Visitor, provider: SigningProvider
) -> None:
    right: dict[str, Any] = {"claims": {}, "header": {}, "signs_with": None, "id_token": ""}
    for tampered in TAMPERED:
        for name, value in {**right, **tampered}.items():
            setattr(provider, name, {**ANNA, **value} if name == "claims" else value)
        assert await visitor.signs_in(provider) == problem("SIGN_IN_FAILED"), tampered
        assert (await visitor.me()).status == 401
    provider.id_token, provider.claims = "", dict(ANNA)
    assert await visitor.signs_in(provider) == DONE


@pytest.mark.usefixtures("anna")
async def test_a_token_without_signature_or_with_a_published_secret_signs_nobody_in(
    visitor: Visitor, provider: SigningProvider
) -> None:
    public = OctKey.import_key(json.dumps(provider.key.as_dict(private=False)))
    makers: list[Callable[[str], str]] = [
        lambda nonce: unsigned(claims_of(provider, nonce=nonce)),
        lambda nonce: jwt.encode({"alg": "HS256", "kid": "first"}, claims_of(provider, nonce=nonce), public),
        lambda nonce: jwt.encode({"alg": "HS256"}, claims_of(provider, nonce=nonce), OctKey.import_key("secret" * 8)),
    ]
    for made in makers:
        query = await visitor.begin(provider)
        provider.id_token = made(provider.nonces[query["code"]])
        assert await visitor.finish(query) == problem("SIGN_IN_FAILED")


@pytest.mark.usefixtures("anna")
async def test_a_callback_is_accepted_once_in_its_browser_and_for_its_provider(
    visitor: Visitor, stranger: Visitor, provider: SigningProvider
) -> None:
    query = await visitor.begin(provider)
    await stranger.begin(provider)
    assert await stranger.finish(query) == problem("SIGN_IN_UNKNOWN"), "a page of another sends its own state"
    assert await visitor.finish(query, "school") == problem("SIGN_IN_UNKNOWN"), "mix-up of providers"
    assert await visitor.finish({**query, "state": query["state"][:-1]}) == problem("SIGN_IN_UNKNOWN")
    assert provider.calls["token"] == 0, "none of these codes was passed on"
    kept = {cookie.key: cookie.value for cookie in visitor.session.cookie_jar}
    assert await visitor.finish(query) == DONE
    visitor.session.cookie_jar.update_cookies(kept, URL(visitor.api.url))
    assert await visitor.finish(query) == problem("SIGN_IN_UNKNOWN")
    assert provider.calls["token"] == 1


@pytest.mark.usefixtures("anna")
async def test_an_answer_that_names_another_issuer_or_none_where_it_must_is_refused(
    visitor: Visitor, provider: SigningProvider
) -> None:
    query = await visitor.begin(provider)
    assert await visitor.finish({**query, "iss": "https://evil.example"}) == problem("SIGN_IN_FAILED")
    assert provider.calls["token"] == 0
    query = await visitor.begin(provider)
    assert await visitor.finish({**query, "iss": provider.url}) == DONE
    query = await visitor.begin(provider)
    assert await visitor.finish({"state": query["state"], "error": "access_denied"}) == problem("SIGN_IN_REFUSED")


ODD: list[tuple[str, dict[str, Any]]] = [
    ("token", {"status": 500}),
    ("token", {"text": "[]"}),
    ("token", {"status": 400, "text": '{"error": "invalid_grant"}'}),
    ("token", {"body": bytes(300_000)}),
    ("token", {"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}),
    ("keys", {"text": "{"}),
    ("userinfo", {"text": '{"sub": "another", "email": "anna@example.org", "email_verified": true}'}),
    ("userinfo", {"text": "[]"}),
]
"""What an address answers in place of the right thing, as the arguments of a response."""


@pytest.mark.usefixtures("anna")
class TestBadTimes:
    async def test_a_provider_that_announces_its_issuer_must_name_it(
        self, visitor: Visitor, provider: SigningProvider
    ) -> None:
        provider.metadata = {"authorization_response_iss_parameter_supported": True}
        assert await visitor.signs_in(provider) == problem("SIGN_IN_FAILED")

    async def test_while_the_provider_is_away_sessions_go_on_and_a_sign_in_says_so(
        self, visitor: Visitor, stranger: Visitor, provider: SigningProvider
    ) -> None:
        await visitor.signs_in(provider)
        query = await stranger.begin(provider)
        await provider.stop()
        assert (await visitor.me()).status == 200
        assert await stranger.finish(query) == problem("SIGN_IN_FAILED")

    async def test_an_odd_answer_of_the_provider_signs_nobody_in(
        self, visitor: Visitor, provider: SigningProvider
    ) -> None:
        provider.answers = {"openid-configuration": {"text": '{"issuer": "https://evil.example"}'}}
        assert (await visitor.get(f"{PATH}/university")).headers["Location"] == problem("SIGN_IN_FAILED")
        provider.claims = {}
        for address, answer in ODD:
            provider.answers = {address: answer}
            assert await visitor.signs_in(provider) == problem("SIGN_IN_FAILED"), (address, answer)
        provider.answers, provider.further = {}, ANNA
        assert await visitor.signs_in(provider) == DONE, "with the claims of the userinfo address"
        assert read_keys({"keys": "none"}) == read_keys([]) == read_keys({"keys": [{"kty": "RSA"}, None]}) == []

    @pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"])
    async def test_addresses_of_the_document_that_are_not_safe_are_not_called(
        self, visitor: Visitor, provider: SigningProvider, name: str
    ) -> None:
        other: SigningProvider = provider.other  # type: ignore[attr-defined]
        for address in ("http://10.0.0.1/token", f"{other.url}/token", "file:///etc/passwd", "http://[", "//x"):
            provider.metadata = {name: address}
            assert (await visitor.get(f"{PATH}/university")).headers["Location"] == problem("SIGN_IN_FAILED"), address
        assert not other.calls, "another service of this machine"

    async def test_the_secret_follows_no_redirect_and_an_answer_is_not_read_without_end(
        self, visitor: Visitor, provider: SigningProvider
    ) -> None:
        other: SigningProvider = provider.other  # type: ignore[attr-defined]
        provider.answers = {"token": {"status": 307, "headers": {"Location": f"{other.url}/token"}}}
        assert await visitor.signs_in(provider) == problem("SIGN_IN_FAILED")
        assert not other.calls
        keys = {"keys": [provider.key.as_dict(private=False)]}
        for length, found in ((100_000, problem("SIGN_IN_FAILED")), (10_000, DONE)):
            provider.answers = {"keys": {"text": json.dumps({**keys, "more": "x" * length})}}
            assert await visitor.signs_in(provider) == found, length

    async def test_document_and_keys_are_cached_and_a_new_key_is_read_at_once_but_not_without_end(
        self, visitor: Visitor, provider: SigningProvider, monkeypatch: Any
    ) -> None:
        await visitor.signs_in(provider)
        await visitor.signs_in(provider)
        assert (provider.calls["openid-configuration"], provider.calls["keys"]) == (1, 1)
        provider.key = new_key("second")
        assert await visitor.signs_in(provider) == problem("SIGN_IN_FAILED"), "they were read just now"
        monkeypatch.setattr(issuer_module, "_BETWEEN_KEYS", 0.0)
        assert await visitor.signs_in(provider) == DONE
        assert provider.calls["keys"] == 2


NO_LOGOUT: list[dict[str, Any]] = [
    {"iss": "https://evil.example"}, {"aud": "another"}, {"iat": 1_000_000_000}, {"exp": 1_000_000_000},
    {"events": None}, {"events": {}}, {"events": "logout"}, {"nonce": "n"}, {"jti": None}, {"sub": None},
]  # fmt: skip


@pytest.mark.usefixtures("anna")
class TestLogoutByTheProvider:
    async def ends(self, api: Api, token: str, name: str = "university") -> ApiResponse:
        body = urlencode({"logout_token": token}).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": ""}
        return await api.call("POST", f"{PATH}/{name}/logout", data=body, headers=form)

    async def test_a_logout_ends_the_sessions_of_the_sign_in_or_of_the_subject(
        self, api: Api, visitor: Visitor, stranger: Visitor, provider: SigningProvider, services: ApiServices
    ) -> None:
        provider.claims["sid"] = "one"
        await visitor.signs_in(provider)
        provider.claims["sid"] = "two"
        await stranger.signs_in(provider)
        by_mail = await services.sessions.begin_as_person("default", 7)
        assert (await self.ends(api, provider.logout_token(sid="one"))).status == 200
        assert ((await visitor.me()).status, (await stranger.me()).status) == (401, 200)
        everything = provider.logout_token(sub="anna")
        assert (await self.ends(api, everything)).status == 200
        assert (await stranger.me()).status == 401
        assert await services.sessions.find(by_mail.secret) is not None, "it was not begun with the account"
        await stranger.signs_in(provider)
        assert (await self.ends(api, everything)).status == 200
        assert (await stranger.me()).status == 200, "a message that is replayed has no effect"

    async def test_what_is_no_logout_token_ends_nothing(
        self, api: Api, visitor: Visitor, provider: SigningProvider
    ) -> None:
        await visitor.signs_in(provider)
        for claims in NO_LOGOUT:
            response = await self.ends(api, provider.logout_token(**{"sub": "anna", **claims}))
            assert (response.status, response.code) == (400, "LOGOUT_TOKEN_REFUSED"), claims
        assert (await visitor.me()).status == 200

    async def test_the_token_of_one_provider_is_none_of_another_and_a_large_one_is_not_read(
        self, api: Api, visitor: Visitor, provider: SigningProvider
    ) -> None:
        await visitor.signs_in(provider)
        token = provider.logout_token(sub="anna")
        assert (await self.ends(api, token, "school")).code == "LOGOUT_TOKEN_REFUSED"
        assert (await self.ends(api, token, "nowhere")).code == "PROVIDER_NOT_FOUND"
        assert (await self.ends(api, "a" * 20_000)).code == "BODY_TOO_LARGE"
        assert (await self.ends(api, "")).code == "LOGOUT_TOKEN_REFUSED"
        assert (await visitor.me()).status == 200

    async def test_a_person_that_loses_its_account_or_is_blocked_loses_the_session(
        self, visitor: Visitor, provider: SigningProvider, api: Api, services: ApiServices
    ) -> None:
        await visitor.signs_in(provider)
        await api.call("PATCH", "/v1/users/7", {"external_ids": []})
        assert (await visitor.me()).status == 401
        await visitor.signs_in(provider)
        await api.call("PATCH", "/v1/users/7", {"blocked": True})
        assert (await visitor.me()).status == 401
        assert await visitor.signs_in(provider) == problem("ACCOUNT_BLOCKED")
        assert (await api.call("DELETE", "/v1/users/7")).status == 204
        await services.core.directory.users.create("default", User(7, "Another"))
        assert await visitor.signs_in(provider) == "/#/sign-in?bind=1", "another person may get the id"


ROLES: list[tuple[dict[str, Any], str | None]] = [
        ({"realm": {"roles": ["teachers", "office"]}}, "staff"), ({"realm": {"roles": "teachers"}}, "trainer"),
        ({"realm.roles": ["teachers"]}, "trainer"), ({"realm": {"roles": ["admin", "staff"]}}, None),
        ({"realm": {"roles": [{"office": 1}, None, 7]}}, None), ({"realm": ["roles"]}, None), ({}, None),
]  # fmt: skip


def test_a_rule_gives_the_role_of_the_first_value_that_fits() -> None:
    for claims, role in ROLES:
        assert (role_of(RULE, claims), role_of(None, claims)) == (role, None), claims


@pytest.mark.usefixtures("anna")
async def test_a_role_of_the_rule_comes_and_goes_with_the_claim_and_one_given_by_hand_stays(
    api: Api, visitor: Visitor, provider: SigningProvider
) -> None:
    async def role_with(*roles: str) -> str | None:
        provider.claims["realm"] = {"roles": list(roles)}
        assert await visitor.signs_in(provider) == DONE
        role: str | None = (await api.call("GET", "/v1/users/7")).json["role"]
        return role

    assert await role_with("admin") is None
    assert await role_with("teachers") == "trainer"
    assert await role_with() is None
    await api.call("PATCH", "/v1/users/7", {"role": "admin"})
    assert await role_with("teachers") == "admin"


async def test_a_person_signs_out_at_the_provider_and_nobody_leads_a_browser_elsewhere(
    visitor: Visitor, provider: SigningProvider
) -> None:
    left = await visitor.get(f"{PATH}/university/sign-out", post_logout_redirect_uri="https://evil.example")
    query = urlencode({"client_id": CLIENT, "post_logout_redirect_uri": "http://ada.example/"})
    assert left.headers["Location"] == f"{provider.url}/end?{query}"
    assert (await visitor.get(f"{PATH}/nowhere")).headers["Location"] == problem("PROVIDER_NOT_FOUND")


def test_what_is_wrong_with_the_file_of_providers_is_said(tmp_path: Any) -> None:
    file = tmp_path / "providers.yaml"
    one = "issuer: https://id.example, client_id: ada"
    for written, said in (
        (f"Uni: {{{one}}}", "small letters"),
        ("uni: {issuer: http://id.example, client_id: ada}", "https://"),
        (f"uni: {{{one}, scopes: [email]}}", "openid"),
        (f"uni: {{{one}, roles: {{claim: a, values: {{b: king}}}}}}", "king"),
        (f"uni: {{{one}, secret: x}}", "secret"),
    ):
        file.write_text(written)
        with pytest.raises(Exception, match=said):
            read_providers(file)
    file.write_text(f"uni: {{{one}, client_secret: '${{S}}'}}")
    assert read_providers(file, {"S": "x"})["uni"].client_secret == "x"


async def test_the_doctor_asks_each_provider_and_says_what_is_registered_there(
    store: Store, provider: SigningProvider, tmp_path: Any
) -> None:
    file, other = tmp_path / "providers.yaml", provider.other.url  # type: ignore[attr-defined]
    file.write_text(
        f"university: {{issuer: '{provider.url}', client_id: ada}}\nschool: {{issuer: '{other}/', client_id: a}}"
    )
    settings = Settings(oidc=file, public_url=WebAddress("https://ada.example/"))
    good, bad = [finding async for finding in check_identity_providers(store, settings)]
    assert good.is_good
    assert f"https://ada.example{PATH}/university/callback" in good.detail
    assert f"https://ada.example{PATH}/university/logout" in good.detail
    assert bad.is_good is False
    assert f"is of the issuer '{other}'" in bad.detail
    assert "ADA_OIDC" in bad.repair
    (none,) = [finding async for finding in check_identity_providers(store, Settings())]
    assert none.is_good is None


@pytest.mark.usefixtures("anna")
async def test_a_person_presses_the_button_of_the_console_and_is_signed_in(
    services: ApiServices, store: Store, provider: SigningProvider, browser: Browser
) -> None:
    port = free_port()
    here = f"http://127.0.0.1:{port}"
    known = {"university": OidcProvider(provider.url, CLIENT, SECRET, "University")}
    signing_in = replace(services, identity_providers=OidcSignIn(store, known, here))
    async with listening(build(signing_in, Options()), "127.0.0.1", port):
        await browser.open(f"{here}/#/messages", "en")
        link = f"document.querySelector('a[href=\"{PATH}/university\"]')"
        await browser.wait_for(f"Boolean({link})")
        await browser.run(f"{link}.click()")
        await browser.wait_for("location.hash === '#/messages' && Boolean(document.querySelector('.page-messages h1'))")
        assert [cookie["name"] for cookie in await browser.cookies()] == ["ada_session"]
        provider.claims = {"sub": "nobody"}
        await browser.run("fetch('/v1/sessions', {method: 'DELETE'})")
        await browser.open(f"{here}{PATH}/university", "en")
        await browser.wait_for("document.body.innerText.includes('This account is nobody')")
        assert await browser.faults() == []
