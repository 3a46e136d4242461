"""Transfers each file of a delivery to the provider once, not once for each recipient."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from core.model.content import Attachment

_KEPT = 1000

T = TypeVar("T")


class Transfers(Generic[T]):
    """The newest transfers of a courier, by delivery and file."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, Attachment], asyncio.Task[T]] = OrderedDict()

    async def get(self, seed: str, attachment: Attachment, transfer: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the transfer, which is made at the first call, and again if it raised."""
        key = seed, attachment
        if key not in self._known:
            self._known[key] = asyncio.create_task(transfer())
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        try:
            return await asyncio.shield(self._known[key])
        except asyncio.CancelledError:
            raise
        except BaseException:  # whatever the transfer raises: the next call makes it again
            self._known.pop(key, None)
            raise
