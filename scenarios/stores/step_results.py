"""Remembers what a step has made outside its run, such as an invite link.

A step may be executed again after a crash. What it made is looked up by `Context.identity` first, so a repeat returns
the same. It is kept for a week, longer than any repeat takes.
"""

from datetime import timedelta

from core.model.clock import in_ms
from core.redis.keys import KEYS
from scenarios.context import Context

KEPT = timedelta(days=7)
KEPT_MS = in_ms(KEPT)


async def recall(context: Context) -> str | None:
    """Return what an earlier execution of this step has remembered."""
    services = context.services
    key = KEYS["stepresult"].at(_shard(context), services.tenant, context.identity)
    found: str | None = await services.core.store.command("GET", key)
    return found


async def remember(context: Context, result: str) -> str:
    """Keep a result, unless this step has one already; return the first one."""
    services = context.services
    arguments = (services.tenant, context.identity, result, KEPT_MS)
    kept: str = await services.core.store.run("remember_step", _shard(context), *arguments)
    return kept


async def note(context: Context, state: str) -> None:
    """Keep the state of a step that goes on, in place of the one before."""
    services = context.services
    key = KEYS["stepresult"].at(_shard(context), services.tenant, f"state:{context.identity}")
    await services.core.store.command("SET", key, state, "PX", KEPT_MS)


async def noted(context: Context) -> str | None:
    """Return the state that `note` has kept."""
    services = context.services
    key = KEYS["stepresult"].at(_shard(context), services.tenant, f"state:{context.identity}")
    found: str | None = await services.core.store.command("GET", key)
    return found


def _shard(context: Context) -> int:
    services = context.services
    return services.core.store.shard_of_person(services.tenant, context.channel, context.person)
