"""A strict OAuth 2 service: PKCE is required, codes and refresh tokens are valid once."""

import asyncio
import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientSession, web

from providers.sign_in import SignedIn, SignIn

BROWSER = "the secret of a browser"
SECRET = "the client's secret"


@dataclass
class OAuthServer:
    """`lifetime`: of access tokens, in seconds. `calls`: of the token address, by grant. `status`: of its answers.
    `odd`: its answer in place of a right one. `waiting`: calls that wait for `release`. `parts`: in how many
    pieces the answer comes. `elsewhere`: what has followed a redirect. `revoked`: the tokens that were revoked, each
    with the hint.
    """

    lifetime: int = 3600
    status: int = 200
    calls: Counter[str] = field(default_factory=Counter)
    url: str = ""
    odd: Callable[[], web.StreamResponse] | None = None
    waiting: int = 0
    parts: int = 1
    elsewhere: list[str] = field(default_factory=list)
    revoked: list[tuple[str, str]] = field(default_factory=list)
    _gate: asyncio.Event = field(default_factory=asyncio.Event)
    _codes: dict[str, tuple[str, str]] = field(default_factory=dict)
    _refresh: set[str] = field(default_factory=set)
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.add_routes([web.get("/authorize", self._authorize), web.post("/token", self._token)])
        app.add_routes([web.post("/revoke", self._revoke), web.route("*", "/elsewhere", self._elsewhere)])
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._gate.set()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def hold(self) -> None:
        """Keep the answers of the token address back until `release`."""
        self._gate.clear()

    def release(self) -> None:
        self._gate.set()

    def revoke_everything(self) -> None:
        self._refresh.clear()

    @property
    def refresh_tokens(self) -> set[str]:
        """The refresh tokens that are valid."""
        return set(self._refresh)

    async def _authorize(self, request: web.Request) -> web.Response:
        """The user agrees at once: the answer leads to the callback."""
        given = request.query
        assert given["code_challenge_method"] == "S256"
        assert given["response_type"] == "code"
        code = secrets.token_urlsafe(16)
        self._codes[code] = (given["code_challenge"], given["redirect_uri"])
        answer = urlencode({"code": code, "state": given["state"]})
        raise web.HTTPFound(f"{given['redirect_uri']}?{answer}")

    async def _token(self, request: web.Request) -> web.StreamResponse:
        given = await request.post()
        grant = str(given["grant_type"])
        self.calls[grant] += 1
        response = self._answer(given, grant)
        self.waiting += 1
        await self._gate.wait()
        self.waiting -= 1
        return response if self.parts == 1 else await self._in_parts(request, response)

    async def _in_parts(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        assert isinstance(response, web.Response)
        body, size = str(response.text).encode(), len(str(response.text)) // self.parts + 1
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(request)
        for start in range(0, len(body), size):
            await stream.write(body[start : start + size])
            await asyncio.sleep(0.02)  # so that each part arrives by itself
        return stream

    async def _elsewhere(self, request: web.Request) -> web.Response:
        self.elsewhere.append(await request.text())
        return web.json_response({"access_token": "stolen", "token_type": "bearer"})

    async def _revoke(self, request: web.Request) -> web.StreamResponse:
        """RFC 7009: an unknown token is no error."""
        given = await request.post()
        await self._gate.wait()
        if refusal := self._refusal(given):
            return refusal
        token = str(given["token"])
        self.revoked.append((token, str(given["token_type_hint"])))
        self._refresh.discard(token)
        return web.Response()

    def _refusal(self, given: Any) -> web.StreamResponse | None:
        if self.odd:
            return self.odd()
        if self.status != 200:
            return web.Response(status=self.status, text="<html>busy</html>")
        if given.get("client_id") != "ada" or given.get("client_secret") != SECRET:
            return web.json_response({"error": "invalid_client"}, status=401)
        return None

    def _answer(self, given: Any, grant: str) -> web.StreamResponse:
        if refusal := self._refusal(given):
            return refusal
        is_valid = self._takes_code(given) if grant == "authorization_code" else self._takes_refresh(given)
        if not is_valid:
            return web.json_response({"error": "invalid_grant"}, status=400)
        refresh = secrets.token_urlsafe(16)
        self._refresh.add(refresh)
        access = f"access-{sum(self.calls.values())}"
        return web.json_response(
            {"access_token": access, "token_type": "bearer", "expires_in": self.lifetime, "refresh_token": refresh}
        )

    def _takes_code(self, given: object) -> bool:
        challenge, redirect = self._codes.pop(str(given["code"]), ("", ""))  # type: ignore[index]
        digest = hashlib.sha256(str(given["code_verifier"]).encode()).digest()  # type: ignore[index]
        is_same = urlsafe_b64encode(digest).decode().rstrip("=") == challenge
        return is_same and given["redirect_uri"] == redirect  # type: ignore[index]

    def _takes_refresh(self, given: object) -> bool:
        refresh = str(given["refresh_token"])  # type: ignore[index]
        if refresh not in self._refresh:
            return False
        self._refresh.remove(refresh)
        return True


async def agree(sign_in: SignIn, address: str, **query: str) -> str:
    """A person opens the address, confirms, and agrees at the service. Returns the query string of the callback."""
    at_service = await sign_in.confirm(address.rpartition("/")[2], BROWSER)
    url = "&".join([at_service, *(f"{name}={value}" for name, value in query.items())])
    async with ClientSession() as browser, browser.get(url, allow_redirects=False) as answer:
        return answer.headers["Location"].partition("?")[2]


async def sign_in_at(sign_in: SignIn, address: str, **query: str) -> SignedIn:
    """A person opens the address and does all that is needed."""
    return await sign_in.finish(await agree(sign_in, address, **query), BROWSER)
