"""A wire between a courier and its provider that can go dead without telling either end."""

import asyncio


class Relay:
    """Listens on `port` and passes everything to another port, until it is frozen."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._frozen: set[asyncio.Task[None]] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.port = 0
        self.connections = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def freeze(self) -> None:
        """Nothing passes any more over the connections there are; new ones are whole."""
        for task in self._passing:
            task.cancel()
        self._passing.clear()

    async def stop(self) -> None:
        self.freeze()
        for writer in self._writers:
            writer.transport.abort()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        further, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [writer, back]
        for source, sink in ((reader, back), (further, writer)):
            self._passing.add(asyncio.create_task(_pass_on(source, sink)))


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
    sink.close()
