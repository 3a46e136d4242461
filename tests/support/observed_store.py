"""A store whose script calls a test can observe."""

from typing import Any

from core.redis.store import Argument, Store


class ObservedStore(Store):
    """`latest`: script → its latest reply."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.latest: dict[str, Any] = {}

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        self.latest[name] = await super().run(name, shard, *arguments)
        return self.latest[name]
