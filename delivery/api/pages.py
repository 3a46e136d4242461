"""The page about the API and the OpenAPI document.

The page loads nothing from other hosts; the policy sent with it forbids it.
"""

import base64
import hashlib
import re
from importlib import resources

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from delivery.http.context import JSON_HEADERS, ApiContext
from delivery.http.route import OpenRoute, Routes

HTML = "text/html; charset=utf-8"


def openapi(context: ApiContext) -> Handler:

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=context.openapi(), headers=JSON_HEADERS)

    return handle


def docs(context: ApiContext) -> Handler:
    return _page("docs.html")


def _page(name: str) -> Handler:
    text = read_page("delivery.api", name)
    headers = {
        hdrs.CONTENT_TYPE: HTML,
        hdrs.CONTENT_SECURITY_POLICY: content_security_policy(text),
        hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
        "Referrer-Policy": "no-referrer",
    }

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=text.encode(), headers=headers)

    return handle


def read_page(package: str, name: str) -> str:
    """Return a page that stands beside the modules of a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def content_security_policy(page: str, form_action: str = "'none'") -> str:
    """Return the policy: only the page's own script and style run, and it may connect to this host only. `form_action`:
    where its forms may go.
    """
    script, style = (_hashes(page, tag) for tag in ("script", "style"))
    return (
        f"default-src 'none'; connect-src 'self'; script-src {script}; style-src {style}; "
        f"base-uri 'none'; form-action {form_action}; frame-ancestors 'none'"
    )


def _hashes(page: str, tag: str) -> str:
    texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


ROUTES: Routes = (
    OpenRoute("GET", "/openapi.json", "This document", openapi, dict),
    OpenRoute("GET", "/docs", "This document as a page", docs, HTML),
)  # fmt: skip
