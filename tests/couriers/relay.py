"""A TCP relay between a courier and its provider that can stop passing data without closing the connection."""

import asyncio


class Relay:
    """Listens on `port` and forwards all data to another port, until it is frozen."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._forwarding: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.port = 0
        self.connections = 0

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
        target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [writer, target_writer]
        for source, sink in ((reader, target_writer), (target_reader, writer)):
            self._forwarding.add(asyncio.create_task(_forward(source, sink)))


async def _forward(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
    sink.close()
