"""The pages: one to send from and to watch, one to read the API in, and the document it is drawn from.

They are whole in themselves: no outside host is asked for anything, and the policy sent with them forbids it.
"""

import base64
import hashlib
import re
from collections.abc import Awaitable, Callable
from importlib import resources

from aiohttp import hdrs, web

from delivery.http.context import Desk

HTML = "text/html; charset=utf-8"
Plain = Callable[[web.Request], Awaitable[web.Response]]


def openapi(desk: Desk) -> Plain:
    """The OpenAPI document."""

    async def telling(request: web.Request) -> web.Response:
        return web.Response(body=desk.document, headers={hdrs.CONTENT_TYPE: "application/json"})

    return telling


def docs(desk: Desk) -> Plain:
    """The API to read."""
    return _page("docs.html")


def front(desk: Desk) -> Plain:
    """A form to send from, and what became of it, live."""
    return _page("front.html")


def _page(name: str) -> Plain:
    text = resources.files("delivery").joinpath("page", name).read_text(encoding="utf-8")
    headers = {
        hdrs.CONTENT_TYPE: HTML,
        hdrs.CONTENT_SECURITY_POLICY: policy(text),
        hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
        "Referrer-Policy": "no-referrer",
    }

    async def showing(request: web.Request) -> web.Response:
        return web.Response(body=text.encode(), headers=headers)

    return showing


def policy(page: str) -> str:
    """Only the page's own script and style run, and it may talk to this host alone."""
    script, style = (_hashes(page, tag) for tag in ("script", "style"))
    return (
        f"default-src 'none'; connect-src 'self'; script-src {script}; style-src {style}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashes(page: str, tag: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in found)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
