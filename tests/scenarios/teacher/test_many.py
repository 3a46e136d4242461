"""An administrator of a large university sees all its groups."""

import asyncio

from core.directory import Directory
from core.model.people import Group, Supergroup
from core.orders.choices import Addressees
from tests.support.stack import TENANT, Stack


async def test_an_administrator_sees_more_groups_than_one_read_returns(stack: Stack) -> None:
    directory, numbers = Directory(stack.store), range(1000, 1501)
    await asyncio.gather(*(directory.groups.create(TENANT, Group(number, f"G{number}")) for number in numbers))
    await directory.groups.create(TENANT, Group(101, "Group 101"))
    await asyncio.gather(*(directory.supergroups.create(TENANT, Supergroup(f"s{n}", f"S{n}", [101])) for n in numbers))
    choices = await Addressees(directory, TENANT).of(None)
    titles = {choice.title for choice in choices}
    assert {f"G{number}" for number in numbers} | {f"S{number}" for number in numbers} <= titles
