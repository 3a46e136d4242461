"""A TCP relay between a courier and its provider that can stop passing data without closing the connection."""

import asyncio
from collections.abc import Mapping


class Relay:
    """Listens on `port` and forwards all data to another port, until it is frozen.

    `reply_delays`: number of a connection, from 1 → seconds that each of its replies takes. `requests`: all bytes that
    were sent to the port.
    """

    def __init__(self, target: int, reply_delays: Mapping[int, float] | None = None) -> None:
        self._target = target
        self._reply_delays = reply_delays or {}
        self._server: asyncio.Server | None = None
        self._forwarding: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.port = 0
        self.connections = 0
        self.requests = bytearray()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def freeze(self) -> None:
        """Stop forwarding on the existing connections; new connections work."""
        for task in self._forwarding:
            task.cancel()
        self._forwarding.clear()

    async def stop(self) -> None:
        self.freeze()
        for writer in self._writers:
            writer.transport.abort()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        delay = self._reply_delays.get(self.connections, 0)
        target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [writer, target_writer]
        ways = ((reader, target_writer, 0, self.requests), (target_reader, writer, delay, bytearray()))
        for source, sink, seconds, kept in ways:
            self._forwarding.add(asyncio.create_task(_forward(source, sink, seconds, kept)))


async def _forward(source: asyncio.StreamReader, sink: asyncio.StreamWriter, delay: float, kept: bytearray) -> None:
    while data := await source.read(65536):
        kept += data
        await asyncio.sleep(delay)
        sink.write(data)
    sink.close()
