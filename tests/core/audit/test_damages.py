"""Every kind of damage is found on a live server, and repaired where that is safe (K-44).

Debian's Redis runs each script of the audit in `tests/core/redis/test_library.py`, so the damages are tried on one
server.
"""

import pytest

from tests.core.audit.damages import DAMAGES, Scene
from tests.support.every_verb import call_every_verb
from tests.support.servers import on_both_servers
from tests.support.stack import Stack


@on_both_servers
async def test_a_server_in_every_state_has_no_violation(stack: Stack) -> None:
    await call_every_verb(stack)
    assert await Scene(stack).violations() == []


@on_both_servers
async def test_the_scene_has_no_violation(damaged: Scene) -> None:
    assert await damaged.violations() == []


@pytest.mark.parametrize("rule", sorted({rule for rule, _, _ in DAMAGES}))
async def test_a_damage_is_found_and_repaired_where_that_is_safe(damaged: Scene, rule: str) -> None:
    stored = await damaged.stored()
    for commands, is_repairable in [(commands, safe) for of, commands, safe in DAMAGES if of == rule]:
        found = await damaged.found(rule, *commands)
        assert all(violation.repair or violation.why for violation in found), (commands, found)
        await damaged.repair()
        left = await damaged.violations()
        assert (left == []) == is_repairable, (commands, left)
        await damaged.put_back(stored)
        assert await damaged.violations() == [], commands
