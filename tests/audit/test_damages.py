"""Every kind of damage is found and named on a live server, and mended where that is safe (K-44)."""

import pytest

from tests.audit.damages import DAMAGES, Scene
from tests.support.every_verb import tour
from tests.support.servers import on_both_servers
from tests.support.stack import Stack

pytestmark = [pytest.mark.row("K-44"), on_both_servers]


def name_of(value: object) -> str:
    return "+".join("-".join(command[:2]) for command in value) if isinstance(value, list) else str(value)


async def test_a_house_at_work_is_sound(stack: Stack) -> None:
    await tour(stack)
    assert await Scene(stack).broken() == []


async def test_the_scene_is_sound(damaged: Scene) -> None:
    assert await damaged.broken() == []


@pytest.mark.parametrize(("rule", "commands", "mended"), DAMAGES, ids=name_of)
async def test_a_damage_is_named_and_mended_where_it_is_safe(
    damaged: Scene, rule: str, commands: list[list[str]], mended: bool
) -> None:
    await damaged.damage(*commands)
    broken = await damaged.broken()
    mine = [violation for violation in broken if violation.rule == rule]
    assert mine, broken
    assert all(violation.key and violation.found and violation.wanted for violation in broken)
    assert all(violation.mend or violation.why for violation in broken)
    await damaged.repair()
    left = await damaged.broken()
    assert (left == []) == mended, left
