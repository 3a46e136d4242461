"""A mail as a mail program shows it: its HTML, text, headers, source and files. What it contains is untrusted."""

from datetime import UTC, datetime

from aiohttp import ClientError, ClientSession, web

from sandbox.mail import SmtpServer
from sandbox.mail.received_mail import attachments_of, headers_of, read_mail
from sandbox.mail.replying import CLIENTS, open_links, reply_to
from sandbox.web.input import MAX_INTEGER, read_body

_HTML_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""No script, no form, nothing from other hosts."""


class MailRoutes:
    """The newest mails by the number of their message."""

    def __init__(self, server: SmtpServer) -> None:
        self._server = server

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(r"/mails/{number:\d{1,12}}", self._show),
            web.get(r"/mails/{number:\d{1,12}}/html", self._html),
            web.get(r"/mails/{number:\d{1,12}}/files/{file:\d{1,4}}", self._file),
            web.post("/write/email", self._write),
            web.post("/scan/email", self._scan),
        ]

    async def _show(self, request: web.Request) -> web.Response:
        content = self._content(request)
        mail = read_mail(content)
        files = [{"name": one.name, "type": one.type, "size": len(one.content)} for one in attachments_of(content)]
        source = content.decode(errors="replace")
        shown = {"subject": mail.subject, "text": mail.text, "html": bool(mail.html), "source": source, "files": files}
        return web.json_response({**shown, "headers": headers_of(content)})

    async def _html(self, request: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": _HTML_POLICY, "X-Content-Type-Options": "nosniff"}
        html = read_mail(self._content(request)).html
        return web.Response(text=html, content_type="text/html", charset="utf-8", headers=headers)

    async def _file(self, request: web.Request) -> web.Response:
        files = attachments_of(self._content(request))
        number = int(request.match_info["file"])
        if number >= len(files):
            raise web.HTTPNotFound
        headers = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}
        return web.Response(body=files[number].content, content_type="application/octet-stream", headers=headers)

    async def _write(self, request: web.Request) -> web.Response:
        """Reply to a mail: post the reply to an address, as a mail server does; return the response."""
        fields = await read_body(request)
        number, text, url = fields.integer("mail", 1, MAX_INTEGER) or 0, fields.text("text"), fields.text("url")
        client = fields.choice("client", CLIENTS) if "client" in fields else "none"
        sender = fields.text("from") if "from" in fields else ""
        is_automatic = bool(fields.integer("automatic", 0, 1))
        fields.check()
        now = datetime.now(UTC)
        mail = reply_to(self._kept(number), text, client, sender, now, is_automatic=is_automatic)
        try:
            async with ClientSession() as session:
                response = await session.post(url, data=mail, headers={"Content-Type": "message/rfc822"})
                return web.json_response({"status": response.status, "response": await response.text()})
        except (ClientError, TimeoutError):
            return web.json_response({"status": None, "response": ""})

    async def _scan(self, request: web.Request) -> web.Response:
        fields = await read_body(request)
        number = fields.integer("mail", 1, MAX_INTEGER) or 0
        fields.check()
        return web.json_response({"opened": await open_links(self._kept(number))})

    def _content(self, request: web.Request) -> bytes:
        return self._kept(int(request.match_info["number"]))

    def _kept(self, number: int) -> bytes:
        """Return the mail as it was transferred. Raises HTTPNotFound if it is not kept any more."""
        content = self._server.received.get(number)
        if content is None:
            raise web.HTTPNotFound
        return content
