"""Every kind of damage is found on a live server, and repaired where that is safe (K-44).

Debian's Redis runs each script of the audit in `tests/core/redis/test_library.py`, so the damages are tried on one
server.
"""

import pytest

from tests.core.audit.damages import DAMAGES, Scene
from tests.support.every_verb import call_every_verb
from tests.support.servers import on_both_servers
from tests.support.stack import Stack


def name_of(value: object) -> str:
    return "+".join("-".join(command[:2]) for command in value) if isinstance(value, list) else str(value)


@on_both_servers
async def test_a_server_in_every_state_has_no_violation(stack: Stack) -> None:
    await call_every_verb(stack)
    assert await Scene(stack).violations() == []


@on_both_servers
async def test_the_scene_has_no_violation(damaged: Scene) -> None:
    assert await damaged.violations() == []


@pytest.mark.parametrize(("rule", "commands", "is_repairable"), DAMAGES, ids=name_of)
async def test_a_damage_is_found_and_repaired_where_that_is_safe(
    damaged: Scene, rule: str, commands: list[list[str]], is_repairable: bool
) -> None:
    await damaged.damage(*commands)
    found = await damaged.violations()
    mine = [violation for violation in found if violation.rule == rule]
    assert mine, found
    assert all(violation.key and violation.found and violation.wanted for violation in found)
    assert all(violation.repair or violation.why for violation in found)
    await damaged.repair()
    left = await damaged.violations()
    assert (left == []) == is_repairable, left
