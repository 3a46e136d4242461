"""A process that behaves as open consoles do: `python -m bench.delivery.open_consoles API_URL KEY COUNT`.

Half of them show the overview, half the tubes (delivery/console/static/pages). Each has its own connections and stream,
reads its page again when the stream says that the queue has changed, and reads it every QUIET seconds anyway. Announces
how many times they read when it is asked to stop.
"""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress

from aiohttp import ClientSession, ClientTimeout, CookieJar

from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce

QUIET = 15.0
Reads = Sequence[tuple[str, float]]
"""Address, and the least number of seconds between two readings, as in pages/overview.js and pages/tubes.js."""

OVERVIEW: Reads = (("/v1/overview", 5.0), ("/v1/figures?step=30", 10.0))
TUBES: Reads = (("/v1/queue/tubes", 2.0),)
_NO_TIMEOUT = ClientTimeout(total=None)


class OpenConsole:
    """One tab. `count`: how many times it has read."""

    def __init__(self, session: ClientSession, reads: Reads) -> None:
        self._session = session
        self._reads = reads
        self._changed = [asyncio.Event() for _ in reads]
        self.shown = asyncio.Event()
        self.count = 0

    async def show(self) -> None:
        """Opens the stream and shows the page until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            for (path, pause), changed in zip(self._reads, self._changed, strict=True):
                tasks.create_task(self._keep(path, pause, changed))

    async def _follow(self) -> None:
        async with self._session.get("/v1/live?topics=queue", timeout=_NO_TIMEOUT) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"event:"):
                    for changed in self._changed:
                        changed.set()

    async def _keep(self, path: str, pause: float, changed: asyncio.Event) -> None:
        """Reads an address now, and again whenever the queue has changed."""
        while True:
            async with self._session.get(path) as response:
                response.raise_for_status()
                await response.read()
            self.count += 1
            self.shown.set()
            await asyncio.sleep(pause)
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), QUIET)
            changed.clear()


async def open_consoles(url: str, key: str, count: int) -> None:
    stop, jar = stop_requested(), CookieJar(unsafe=True)
    async with ClientSession(url, cookie_jar=jar) as session:
        async with session.post("/v1/sessions", json={"key": key}) as response:
            response.raise_for_status()
        consoles = [OpenConsole(session, OVERVIEW if number % 2 else TUBES) for number in range(count)]
        showing = [asyncio.create_task(console.show()) for console in consoles]
        await asyncio.gather(*(console.shown.wait() for console in consoles))
        announce(open=count)
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([stopped, *showing], return_when=asyncio.FIRST_COMPLETED)
        for task in showing:
            task.cancel()
        await asyncio.gather(*showing, return_exceptions=True)
        announce(reads=sum(console.count for console in consoles))


if __name__ == "__main__":
    asyncio.run(open_consoles(sys.argv[1], sys.argv[2], int(sys.argv[3])))
