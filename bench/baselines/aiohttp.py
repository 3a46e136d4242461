"""Bare aiohttp handlers, to compare the API with: one reads and writes bytes, one reads and writes JSON.

`python -m bench.baselines.aiohttp ANSWER_BYTES`; the JSON handler is at `/json`.
"""

import asyncio
import sys

from aiohttp import web

from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce

BACKLOG = 1024


async def serve(answer: bytes) -> None:
    async def handle_bytes(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=202, body=answer, headers={"Content-Type": "application/json"})

    async def handle_json(request: web.Request) -> web.Response:
        body = await request.json()
        return web.json_response({"text": body["text"], "recipients": len(body["recipients"])}, status=202)

    app = web.Application()
    app.router.add_post("/v1/deliveries", handle_bytes)
    app.router.add_post("/json", handle_json)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=BACKLOG).start()
    announce(http=f"http://127.0.0.1:{runner.addresses[0][1]}")
    await stop_requested().wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(b"x" * int(sys.argv[1])))
