"""What ends with a person: jobs and sign-ins, under its id and under each of its contacts.

They are in other parts of the store than the person, so they are ended before the person is deleted, and once more
after it: what was begun in between ends, too. A repeat after a crash does the rest.
"""

from core.jobs import Actor
from core.model.people import User, id_text
from delivery.services import ApiServices
from providers.sign_in.stored import forget_all

_REASON = "the person was deleted"


async def delete_person(services: ApiServices, tenant: str, user: User) -> None:
    """Raises NotFound USER_NOT_FOUND if another was faster."""
    await _end_all(services, tenant, user)
    await services.core.directory.users.delete(tenant, user.id)
    await _end_all(services, tenant, user)


async def _end_all(services: ApiServices, tenant: str, user: User) -> None:
    for name in _names(user):
        await services.core.jobs.stop_all(tenant, name, Actor.ADMIN, _REASON)
        await forget_all(services.core.store, tenant, name)


def _names(user: User) -> list[str]:
    """Under which jobs and sign-ins are stored: a person that the directory did not know yet has CHANNEL:ADDRESS."""
    contacts = [f"{channel}:{address}" for channel, addresses in user.contacts.items() for address in addresses]
    return [id_text(user.id), *contacts]
