"""Groups and supergroups expand to their people, each once (D-02)."""

import asyncio
from typing import Any

from core.directory import Directory
from core.model.people import Group, Supergroup, User
from core.redis.connection import Word
from core.redis.store import Store
from tests.core.directory.conftest import OTHER, TENANT
from tests.core.directory.test_groups import school
from tests.core.directory.test_users import code_of

__all__ = ["school"]


async def origins(
    directory: Directory, groups: list[int | str], supergroups: list[int | str]
) -> dict[int | str, list[str]]:
    expansion = await directory.expander.expand(TENANT, groups, supergroups)
    found = {one.user.id: list(one.origin) for one in expansion.members}
    assert len(found) == len(expansion.members)
    return found


async def test_everybody_is_addressed_once_with_all_groups_as_origin(directory: Directory, school: None) -> None:
    assert await origins(directory, [], ["S"]) == {1: ["A"], 2: ["A", "B"], 3: ["B"]}
    assert await origins(directory, ["B", "B"], ["S", "S"]) == {2: ["B", "A"], 3: ["B"], 1: ["A"]}
    assert await origins(directory, ["A"], []) == {1: ["A"], 2: ["A"]}
    assert await origins(directory, [], []) == {}


async def test_a_virtual_group_is_never_an_origin(directory: Directory, school: None) -> None:
    assert await origins(directory, ["V"], []) == {3: [], 4: []}
    assert await origins(directory, ["V", "B"], []) == {3: ["B"], 4: [], 2: ["B"]}
    await directory.supergroups.add_member(TENANT, "S", "V")
    assert await origins(directory, [], ["S"]) == {1: ["A"], 2: ["A", "B"], 3: ["B"], 4: []}


async def test_unknown_groups_are_refused(directory: Directory, school: None) -> None:
    assert (await code_of(directory.expander.expand(TENANT, ["A", "Z"], [])))[0] == "GROUP_NOT_FOUND"
    assert (await code_of(directory.expander.expand(TENANT, ["S"], [])))[0] == "GROUP_NOT_FOUND"
    assert (await code_of(directory.expander.expand(TENANT, [], ["A"])))[0] == "SUPERGROUP_NOT_FOUND"
    assert (await code_of(directory.expander.expand(OTHER, ["A"], [])))[0] == "GROUP_NOT_FOUND"


async def test_a_person_deleted_meanwhile_is_left_out(directory: Directory, school: None) -> None:
    await directory.users.delete(TENANT, 2)
    assert await origins(directory, [], ["S"]) == {1: ["A"], 3: ["B"]}


class WatchedStore(Store):
    """Records how many members or records each command asks for."""

    def __init__(self, url: str, shards: int) -> None:
        super().__init__(url, shards)
        self.sizes: list[int] = []

    async def command(self, *command: Word) -> Any:
        name, *arguments = command
        assert name in ("HMGET", "ZRANGEBYLEX"), "a command without a limit"
        self.sizes.append(len(arguments) - 1 if name == "HMGET" else int(arguments[-1]))
        return await super().command(*command)


async def test_a_supergroup_of_ten_thousand_expands_without_holding_up_others(
    directory: Directory, store: Store
) -> None:
    """400 groups of 50; each person is in two of them."""
    count = 10_000
    for start in range(0, count, 500):
        numbers = range(start, start + 500)
        people = (User(n, f"Person {n}", contacts={"telegram": [str(n + 1)]}, role="student") for n in numbers)
        await asyncio.gather(*(directory.users.create(TENANT, one) for one in people))
    groups = [f"group {n}" for n in range(400)]
    for n, name in enumerate(groups):
        await directory.groups.create(TENANT, Group(name), [(n * 25 + m) % count for m in range(50)])
    await directory.supergroups.create(TENANT, Supergroup("all", None, groups))
    watched = WatchedStore(store.url, store.shards)
    expanding = asyncio.create_task(Directory(watched).expander.expand(TENANT, [], ["all"]))
    pings = 0
    while not expanding.done():
        await store.ping()
        pings += 1
    await watched.close()
    members = expanding.result().members
    assert len({one.user.id for one in members}) == len(members) == count
    assert {len(one.origin) for one in members} == {2}
    assert max(watched.sizes) <= 500
    assert pings > 20
    await store.redis.flushall()  # nothing was changed by what is tested, and an audit takes three times as long
