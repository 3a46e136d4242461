"""A strict OAuth 2 service: PKCE is required, codes and refresh tokens are valid once."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlencode

from aiohttp import web

SECRET = "the client's secret"


@dataclass
class OAuthServer:
    """`lifetime`: of access tokens, in seconds. `calls`: of the token address, by grant. `status`: of its answers."""

    lifetime: int = 3600
    status: int = 200
    calls: Counter[str] = field(default_factory=Counter)
    url: str = ""
    _codes: dict[str, tuple[str, str]] = field(default_factory=dict)
    _refresh: set[str] = field(default_factory=set)
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.add_routes([web.get("/authorize", self._authorize), web.post("/token", self._token)])
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def revoke_everything(self) -> None:
        self._refresh.clear()

    async def _authorize(self, request: web.Request) -> web.Response:
        """The user agrees at once: the answer leads to the callback."""
        given = request.query
        assert given["code_challenge_method"] == "S256"
        assert given["response_type"] == "code"
        code = secrets.token_urlsafe(16)
        self._codes[code] = (given["code_challenge"], given["redirect_uri"])
        answer = urlencode({"code": code, "state": given["state"]})
        raise web.HTTPFound(f"{given['redirect_uri']}?{answer}")

    async def _token(self, request: web.Request) -> web.Response:
        given = await request.post()
        grant = str(given["grant_type"])
        self.calls[grant] += 1
        if self.status != 200:
            return web.Response(status=self.status, text="<html>busy</html>")
        if given.get("client_id") != "ada" or given.get("client_secret") != SECRET:
            return web.json_response({"error": "invalid_client"}, status=401)
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
