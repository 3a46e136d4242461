"""The push service on one port, and the page of its browsers."""

import asyncio
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from aiohttp import ClientError, web

from sandbox.http_listener import HttpListener, disconnect, html_page, no_response
from sandbox.web_push.browser import Browser, NotOffered, new_browser, subscribe
from sandbox.web_push.encryption import NotForUs, check_sender

MOST_BYTES = 4096
"""Of a body; RFC 8030 lets a service refuse longer ones."""
_WORDS = {
    "en": {
        "title": "Browsers with notifications",
        "hint": "Paste the link to a person's page (it ends a mail of Ada, and begins with …/p/).",
        "on": "Switch notifications on",
        "off": "The browser unsubscribes",
        "none": "No browser has subscribed.",
        "nothing": "No notification yet.",
        "browser": "Browser",
    },
    "ru": {
        "title": "Браузеры с уведомлениями",
        "hint": "Вставьте ссылку на страницу человека (она в конце письма Ады, начинается с …/p/).",
        "on": "Включить уведомления",
        "off": "Браузер отписывается",
        "none": "Ни один браузер не подписан.",
        "nothing": "Уведомлений пока нет.",
        "browser": "Браузер",
    },
}
_PAGE = """<!doctype html>
<html lang="{language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 0 auto; padding: 1rem; }}
:root {{ color-scheme: light dark; overflow-wrap: anywhere; }}
section {{ border: 1px solid #7c8798; border-radius: .5rem; padding: .75rem; margin: 1rem 0; }}
article {{ border-inline-start: 3px solid #1f5fbf; padding-inline-start: .75rem; white-space: pre-wrap; }}
input {{ width: 100%; box-sizing: border-box; padding: .5rem; font: inherit; }}
button {{ font: inherit; padding: .375rem .75rem; margin: .25rem .25rem 0 0; }} form {{ display: inline; }}
</style>
<h1>{title}</h1><form method="post" action="/browsers"><label>{hint}<input name="link" required></label>
<button>{on}</button></form>{browsers}</html>"""


class PushServer(HttpListener):
    """Implements `couriers.channel.Simulator`. `faults`: of the next messages, one for each: a status, with the seconds
    of Retry-After or 0; or `timeout`, `disconnect_before`, `disconnect_after`, `bad_gateway`. `refused`: what was not
    accepted, and why.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.browsers: dict[str, Browser] = {}
        self.faults: list[tuple[int | str, int]] = []
        self.refused: list[str] = []
        self.ttls: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        app = web.Application(client_max_size=MOST_BYTES + 1024)
        app.router.add_post("/push/{id}", self._push)
        app.router.add_get("/", self._show)
        app.router.add_get("/browsers.json", self._list)
        app.router.add_post("/browsers", self._subscribe)
        app.router.add_post("/browsers/{id}/press", self._press)
        app.router.add_post("/browsers/{id}/leave", self._leave)
        super().__init__(app, host, port, "")

    @property
    def environment(self) -> Mapping[str, str]:
        return {"ADA_WEB_PUSH_CONTACT": "mailto:operator@example.org", "ADA_WEB_PUSH_SERVICE": self.url}

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().stop()

    async def close(self) -> None:
        await self.stop()

    def add_browser(self, application_key: str) -> Browser:
        """Return a browser that has subscribed for this key, without a page."""
        browser = new_browser(self.url, application_key)
        self.browsers[browser.id] = browser
        return browser

    async def _push(self, request: web.Request) -> web.StreamResponse:
        fault, wait = self.faults.pop(0) if self.faults else (201, 0)
        browser, body = self.browsers.get(request.match_info["id"]), await request.content.read()
        if fault == "disconnect_before":
            return await disconnect(request)
        if fault not in (201, "disconnect_after", "timeout"):
            headers = {"Retry-After": str(wait)} if wait else {}
            headers |= {"Location": "/elsewhere"} if fault in (301, 307) else {}
            if isinstance(fault, str):
                return html_page(502, "502")
            said = f"refused at {request.url}"  # a service may repeat the address, which is secret
            return web.Response(status=fault, headers=headers, text=said)
        if browser is None:
            return web.Response(status=410)
        if len(body) > MOST_BYTES:
            return web.Response(status=413)
        if problem := self._problem(request, browser):
            self.refused.append(problem)
            return web.Response(status=403 if "key" in problem else 400, text=problem)
        self._begin(browser, body)
        if fault == "timeout":
            return await no_response()
        location = {"Location": f"{self.url}/message/{len(browser.shown)}"}
        return await disconnect(request) if fault == "disconnect_after" else web.Response(status=201, headers=location)

    def _problem(self, request: web.Request, browser: Browser) -> str:
        """Return what is wrong with a request, "" if nothing is."""
        self.ttls.append(request.headers.get("TTL", ""))
        if not self.ttls[-1].isdecimal() or request.headers.get("Content-Encoding") != "aes128gcm":
            return "the header TTL or Content-Encoding is missing"
        try:
            check_sender(request.headers.get("Authorization", ""), browser.application_key, self.url)
        except NotForUs as fault:
            return str(fault)
        return ""

    def _begin(self, browser: Browser, body: bytes) -> None:
        """Let the browser show a message, as it does when the service has answered."""
        task = asyncio.create_task(self._deliver(browser, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, browser: Browser, body: bytes) -> None:
        try:
            await browser.receive(body)
        except (NotForUs, ValueError, ClientError, OSError) as fault:
            self.refused.append(f"the browser cannot use it: {fault!r}")

    # the page

    async def _subscribe(self, request: web.Request) -> web.Response:
        """Open the link of a form as a browser does, and switch notifications on."""
        form = await request.post()
        try:
            browser = await subscribe(self.url, str(form.get("link", "")).strip())
        except (NotOffered, ClientError, OSError, ValueError) as fault:
            return web.Response(status=422, text=str(fault))
        self.browsers[browser.id] = browser
        raise web.HTTPSeeOther("/")

    async def _press(self, request: web.Request) -> web.Response:
        form, browser = await request.post(), self._found(request)
        number, action = (int(str(form[name])) for name in ("notification", "action"))
        if await browser.press(number, action) == 0:
            raise web.HTTPSeeOther(browser.shown[number]["actions"][action]["url"])
        raise web.HTTPSeeOther("/")

    async def _leave(self, request: web.Request) -> web.Response:
        del self.browsers[self._found(request).id]
        raise web.HTTPSeeOther("/")

    def _found(self, request: web.Request) -> Browser:
        if browser := self.browsers.get(request.match_info["id"]):
            return browser
        raise web.HTTPNotFound

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response([{"id": one.id, "shown": one.shown} for one in self.browsers.values()])

    async def _show(self, request: web.Request) -> web.Response:
        language = "ru" if request.headers.get("Accept-Language", "").startswith("ru") else "en"
        words = _WORDS[language]
        browsers = "".join(_section(number, one, words) for number, one in enumerate(self.browsers.values(), 1))
        page = _PAGE.format(language=language, browsers=browsers or f"<p>{words['none']}</p>", **words)
        return web.Response(text=page, content_type="text/html")


def _section(number: int, browser: Browser, words: Mapping[str, str]) -> str:
    shown = "".join(_article(place, one, browser) for place, one in enumerate(browser.shown))
    nothing = f"<p>{words['nothing']}</p>"
    leave = f'<form method="post" action="/browsers/{browser.id}/leave"><button>{words["off"]}</button></form>'
    return f"<section><b>{words['browser']} {number}</b>{shown or nothing}{leave}</section>"


def _article(place: int, notification: Mapping[str, Any], browser: Browser) -> str:
    buttons = "".join(
        f'<form method="post" action="/browsers/{browser.id}/press"><input type="hidden" name="notification" '
        f'value="{place}"><button name="action" value="{number}">{escape(one["title"])}</button></form>'
        for number, one in enumerate(notification.get("actions", ()))
    )
    title, text = escape(notification["title"]), escape(notification["text"])
    return f"<article><b>{title}</b>\n{text}\n{buttons}</article>"


async def start_simulator(directory: Path) -> PushServer:
    """Start the push service. `address.txt` in its directory says where its page is."""
    server = PushServer()
    await server.start()
    (directory / "address.txt").write_text(server.url)
    return server
