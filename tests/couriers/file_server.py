"""A server from which attachments are downloaded, and a small picture."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.serving import serving_app

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000"
    "000049454e44ae426082"
)


@dataclass
class FileServer:
    """`/menu.png`, `/big` (2 MB without a length), `/moved` (to the picture), `/round` (to itself), `/gone`."""

    url: str = ""
    paths: list[str] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        match request.path:
            case "/menu.png":
                return web.Response(body=PICTURE, content_type="image/png")
            case "/moved":
                raise web.HTTPFound("/menu.png")
            case "/round":
                raise web.HTTPFound("/round")
            case "/big":
                return await _big(request)
        raise web.HTTPNotFound


async def _big(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(2**5):
        await response.write(bytes(2**16))
    return response


@asynccontextmanager
async def file_server() -> AsyncIterator[FileServer]:
    server = FileServer()
    app = web.Application()
    app.router.add_get("/{name:.*}", server.serve)
    async with serving_app(app) as url:
        server.url = url
        yield server
