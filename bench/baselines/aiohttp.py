"""Bare aiohttp handlers, to compare the API with: one takes bytes and answers bytes, one takes JSON and answers JSON.

`python -m bench.baselines.aiohttp ANSWER_BYTES`; the second is at `/json`.
"""

import asyncio
import sys

from aiohttp import web

from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce

BACKLOG = 1024


async def serve(answer: bytes) -> None:
    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=202, body=answer, headers={"Content-Type": "application/json"})

    async def take_json(request: web.Request) -> web.Response:
        told = await request.json()
        return web.json_response({"text": told["text"], "recipients": len(told["recipients"])}, status=202)

    app = web.Application()
    app.router.add_post("/v1/deliveries", take)
    app.router.add_post("/json", take_json)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=BACKLOG).start()
    announce(http=f"http://127.0.0.1:{runner.addresses[0][1]}")
    await stop_requested().wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(b"x" * int(sys.argv[1])))
