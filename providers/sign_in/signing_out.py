"""Signing users out: the tokens are deleted here first, then revoked at the services."""

from core.redis.store import Store
from providers.sign_in.sign_in import SignIn
from providers.sign_in.stored import forget


async def sign_out(store: Store, sign_in: SignIn | None, tenant: str, user: str, service: str = "") -> bool:
    """Sign a user out of a service. Without a service: out of all of them, and sign-ins that have begun cannot be
    finished. Returns whether there were tokens. `sign_in`: None without ADA_SIGN_IN; then no service is called.
    """
    deleted = await forget(store, tenant, user, service)
    if sign_in:
        await sign_in.tokens.revoke(deleted)
    return bool(deleted)
