"""A link between two processes that a test can block at an exact point, and cut."""

import asyncio
from collections.abc import Callable


class CuttableLink:
    """Listens on `port` and forwards everything to the port `target` until a test blocks one direction.

    Blocked data is not lost: `release` forwards it; `cut` drops it with the connections. `blocked` counts the pieces of
    data that were blocked. `delay`: seconds by which the next piece of data is late.
    """

    def __init__(self, target: int, delay: Callable[[], float] = lambda: 0.0) -> None:
        self._target = target
        self._delay = delay
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = {"requests": asyncio.Event(), "replies": asyncio.Event()}
        self._triggers: dict[str, bytes] = {}
        self.port = 0
        self.blocked = 0
        self.release()

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """`port` 0: a free one."""
        self._server = await asyncio.start_server(self._connected, host, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def block_requests(self, trigger: bytes = b"") -> None:
        """From now on, or from the request that contains `trigger` on, nothing reaches the target."""
        self._block("requests", trigger)

    def block_replies(self, trigger: bytes = b"") -> None:
        """From now on, or after a request that contains `trigger`, nothing comes back from the target."""
        self._block("replies", trigger)

    def _block(self, direction: str, trigger: bytes) -> None:
        if trigger:
            self._triggers[direction] = trigger
        else:
            self._open[direction].clear()

    def release(self) -> None:
        """Forwards everything that was blocked, and everything that follows."""
        self._triggers.clear()
        for is_open in self._open.values():
            is_open.set()

    def redirect(self, target: int) -> None:
        """Cuts all connections; new ones go to another port."""
        self.lead_new_connections_to(target)
        self.cut()

    def lead_new_connections_to(self, target: int) -> None:
        """Leaves the connections that are open where they are."""
        self._target = target

    def cut(self) -> None:
        """Breaks every connection; blocked data is lost. New connections work."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self.release()

    async def _connected(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            target, to_target = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            to_client.transport.abort()
            return
        self._writers |= {to_client, to_target}
        await asyncio.gather(self._forward("requests", client, to_target), self._forward("replies", target, to_client))

    async def _forward(self, direction: str, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                if direction == "requests":
                    self._check_triggers(data)
                self.blocked += not self._open[direction].is_set()
                await self._open[direction].wait()
                await asyncio.sleep(self._delay())
                sink.write(data)
        except OSError:
            pass  # one end was killed; the other end sees that its own connection is closed
        sink.close()

    def _check_triggers(self, request: bytes) -> None:
        for direction, trigger in self._triggers.items():
            if trigger in request:
                self._open[direction].clear()
