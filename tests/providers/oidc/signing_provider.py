"""An identity provider that signs whatever a test wants: also what no provider should."""

import json
import secrets
import time
from base64 import urlsafe_b64encode
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey, Key

from providers.oidc.issuer import LOGOUT_EVENT

CLIENT = "ada"
SECRET = "s:e c+r%et"


def new_key(key_id: str) -> Key:
    return ECKey.generate_key("P-256", {"kid": key_id, "use": "sig", "alg": "ES256"})


@dataclass
class SigningProvider:
    """`claims`: added to those of an ID token, None removes one. `header`: of its tokens. `signs_with`: a key that it
    does not publish, in place of `key`. `calls`: by path. `metadata`: added to the document. `answers`: the body of an
    address in place of a right one.
    """

    claims: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    further: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    key: Key = field(default_factory=lambda: new_key("first"))
    signs_with: Key | None = None
    id_token: str = ""
    calls: Counter[str] = field(default_factory=Counter)
    tokens_asked: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    nonces: dict[str, str] = field(default_factory=dict)
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._respond)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def agree(self, address: str) -> dict[str, str]:
        """What the callback gets when a person agrees at this address."""
        given = {name: one for name, (one, *_) in parse_qs(urlsplit(address).query).items()}
        assert (given["response_type"], given["code_challenge_method"]) == ("code", "S256")
        code = secrets.token_urlsafe(8)
        self.nonces[code] = given["nonce"]
        return {"code": code, "state": given["state"]}

    def signed(self, claims: dict[str, Any], **header: Any) -> str:
        key = self.signs_with or self.key
        header = {"alg": key.get("alg") or "ES256", "kid": self.key.kid, **header, **self.header}
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(header, kept, key, algorithms=[header["alg"]])

    def logout_token(self, **claims: Any) -> str:
        now = int(time.time())
        given = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 120, "jti": secrets.token_hex(8)}
        return self.signed({**given, "events": {LOGOUT_EVENT: {}}, **claims}, typ="logout+jwt")

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rpartition("/")[2]
        self.calls[path] += 1
        if path in self.answers:
            return web.Response(**self.answers[path])
        if path == "authorize":
            raise web.HTTPFound(f"{request.query['redirect_uri']}?{urlencode(self.agree(str(request.url)))}")
        handlers = {"openid-configuration": self._document, "keys": self._keys, "token": self._token}
        if path == "userinfo":
            assert request.headers["Authorization"] == "Bearer access"
            return web.json_response({"sub": self.claims.get("sub", "anna"), **self.further})
        return web.json_response(handlers[path](dict(await request.post())))

    def _document(self, _: Any) -> dict[str, Any]:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        names |= {"userinfo_endpoint": "userinfo", "end_session_endpoint": "end"}
        return {"issuer": self.url, **{name: f"{self.url}/{path}" for name, path in names.items()}, **self.metadata}

    def _keys(self, _: Any) -> dict[str, Any]:
        return {"keys": [self.key.as_dict(private=False), {"kty": "oct", "k": "c2VjcmV0", "kid": self.key.kid}]}

    def _token(self, form: dict[str, Any]) -> dict[str, Any]:
        self.tokens_asked.append(form)
        now = int(time.time())
        given = {"iss": self.url, "aud": CLIENT, "sub": "anna", "iat": now, "exp": now + 300}
        claims = {**given, "nonce": self.nonces.pop(str(form["code"]), ""), **self.claims}
        id_token = self.id_token or self.signed(claims)
        return {"access_token": "access", "token_type": "Bearer", "id_token": id_token}


def unsigned(claims: dict[str, Any]) -> str:
    """A token that says it needs no signature."""
    parts = ({"alg": "none"}, claims)
    return ".".join([*(urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts), ""])
