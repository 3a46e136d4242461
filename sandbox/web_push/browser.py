"""A browser: subscribes on a page, shows notifications, reports each to the page's server, answers by their buttons.

It does what the page's script and service worker do in a real one.
"""

import json
import re
import secrets
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from aiohttp import ClientSession, ClientTimeout
from cryptography.hazmat.primitives.asymmetric import ec

from sandbox.web_push.encryption import base64url, decrypt, point_of

_KEY = re.compile(r'data-key="([\w-]+)"')
_AUTH_BYTES = 16
_LIMIT = ClientTimeout(total=10)
AGENT = "Mozilla/5.0 (X11; Linux x86_64) Sandbox/1 Firefox/140.0"


class NotOffered(Exception):
    """The page offers no notifications."""


@dataclass(frozen=True)
class Browser:
    """`application_key`: for which it has subscribed. `shown`: its notifications, the newest last. `is_away`: it shows
    them later. `reports`: what the page's server has answered to its reports.
    """

    id: str
    endpoint: str
    private: ec.EllipticCurvePrivateKey = field(repr=False)
    auth: bytes = field(repr=False)
    application_key: str = ""
    shown: list[dict[str, Any]] = field(default_factory=list)
    reports: list[int] = field(default_factory=list)

    @property
    def subscription(self) -> dict[str, Any]:
        """Return it as `PushSubscription.toJSON()` does."""
        keys = {"p256dh": base64url(point_of(self.private.public_key())), "auth": base64url(self.auth)}
        return {"endpoint": self.endpoint, "expirationTime": None, "keys": keys}

    async def receive(self, body: bytes) -> None:
        """Decrypt and show a message, and report it. Raises NotForUs, ValueError."""
        notification = json.loads(decrypt(body, self.private, self.auth))
        self.shown.append(notification)
        if receipt := notification.get("receipt"):
            async with ClientSession(timeout=_LIMIT) as session, session.post(receipt) as response:
                self.reports.append(response.status)

    async def press(self, number: int, action: int) -> int:
        """Press a button of a notification; return the status of the answer, 0 if the button opens a page."""
        pressed = self.shown[number]["actions"][action]
        if not pressed["answers"]:
            return 0
        async with ClientSession(timeout=_LIMIT) as session, session.post(pressed["url"]) as response:
            return response.status


async def renew(browser: Browser, service: str) -> Browser:
    """Return the browser with another subscription, as its service worker reports it after `pushsubscriptionchange`: to
    the page that the newest notification names. Raises NotOffered, aiohttp.ClientError.
    """
    renewed = new_browser(service, browser.application_key)
    body = {**renewed.subscription, "replaces": browser.subscription}
    async with ClientSession(timeout=_LIMIT, headers={"User-Agent": AGENT}) as session:
        await _subscribed(session, browser.shown[-1]["settings"], body)
    return renewed


async def _subscribed(session: ClientSession, page: str, body: dict[str, Any]) -> None:
    async with session.post(f"{page}/devices", json=body) as response:
        if response.status >= 300:
            raise NotOffered(f"the page's server answers {response.status}: {await response.text()}")


def new_browser(service: str, application_key: str = "") -> Browser:
    """Return a browser whose endpoint is at this push service."""
    name = secrets.token_urlsafe(24)
    private = ec.generate_private_key(ec.SECP256R1())
    return Browser(name, f"{service}/push/{name}", private, secrets.token_bytes(_AUTH_BYTES), application_key)


async def subscribe(service: str, link: str) -> Browser:
    """Switch notifications on at the page behind a link. Raises NotOffered, aiohttp.ClientError."""
    async with ClientSession(timeout=_LIMIT, headers={"User-Agent": AGENT}) as session:
        async with session.get(link) as response:
            found = _KEY.search(unescape(await response.text()))
        if found is None:
            raise NotOffered("the page offers no notifications")
        browser = new_browser(service, found[1])
        await _subscribed(session, link.partition("?")[0], browser.subscription)
    return browser
