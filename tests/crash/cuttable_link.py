"""A wire between two processes that a test can hold at an exact point, and cut."""

import asyncio


class Wire:
    """Listens on `port` and passes everything on to `target`, until it is told to keep something back.

    What is kept back is not lost: `release` lets it pass, `cut` drops it with the connections. `kept` counts it.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = {"requests": asyncio.Event(), "answers": asyncio.Event()}
        self._words: dict[str, bytes] = {}
        self.port = 0
        self.kept = 0
        self.release()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def keep_requests(self, since: bytes = b"") -> None:
        """From now on, or from the request with these bytes on, nothing reaches the target."""
        self._keep("requests", since)

    def keep_answers(self, since: bytes = b"") -> None:
        """From now on, or once a request with these bytes has passed, nothing comes back from the target."""
        self._keep("answers", since)

    def _keep(self, way: str, since: bytes) -> None:
        if since:
            self._words[way] = since
        else:
            self._open[way].clear()

    def release(self) -> None:
        """All that was kept passes, and whatever follows."""
        self._words.clear()
        for way in self._open.values():
            way.set()

    def turn_to(self, target: int) -> None:
        """From now on somebody else is behind it; whoever was connected must come again."""
        self._target = target
        self.cut()

    def cut(self) -> None:
        """Every connection breaks; what was kept is lost. New connections are whole."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self.release()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, forth}
        await asyncio.gather(self._pass_on("requests", reader, forth), self._pass_on("answers", back, writer))

    async def _pass_on(self, way: str, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                if way == "requests":
                    self._look_for_words(data)
                self.kept += not self._open[way].is_set()
                await self._open[way].wait()
                sink.write(data)
        except OSError:
            pass  # one end was killed; the other hears of it by the end of its own connection
        sink.close()

    def _look_for_words(self, request: bytes) -> None:
        for way, word in self._words.items():
            if word in request:
                self._open[way].clear()
