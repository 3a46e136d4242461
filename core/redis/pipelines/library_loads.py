"""Sends the library of functions to a server that lacks it: it restarted, was flushed, or is a new primary."""

import asyncio

from core.redis.connection import Reply
from core.redis.library import Library, is_loaded
from core.redis.pipelines.pipeline import Pipeline

Load = asyncio.Future[Reply]


class LibraryLoads:
    """One per store: once on each pipeline for all callers that find the library missing at once."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._last: dict[Pipeline, Load] = {}

    def last(self, pipeline: Pipeline) -> Load | None:
        """Return the last load on a pipeline."""
        return self._last.get(pipeline)

    def load(self, pipeline: Pipeline, home: int, before: Load | None) -> None:
        """Load it, unless that was done since the call was sent. `before`: the last load at that time. Raises what that
        load ended with.
        """
        if before and before.done() and (failure := before.exception()) and not is_loaded(failure):
            if self._last.get(pipeline) is before:
                del self._last[pipeline]
            raise failure
        if self._last.get(pipeline) is before:
            # The calls that follow on this connection are written behind it.
            load = pipeline.call("FUNCTION", "LOAD", self._library.text, home=home)
            load.add_done_callback(lambda load: load.cancelled() or load.exception())
            self._last[pipeline] = load
