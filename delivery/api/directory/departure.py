"""Ends everything that belongs to a person who is deleted: jobs and sign-ins, under its id and under each of its
contacts; its data in histories.

They are in other parts of the store than the person, so they are ended before the person is deleted, and once more
after it: what was begun in between ends, too. A repeat after a crash does the rest.
"""

from collections.abc import Sequence
from contextlib import suppress

from core.deliveries.received import ReceivedMessages
from core.directory.records import Merge
from core.errors import NotFound
from core.jobs import Actor
from core.jobs.transitions import PERSON_DELETED
from core.model.people import User, id_text
from core.orders.series import SeriesStore
from core.orders.templates import MessageTemplates
from core.redis.keys import KEYS
from core.redis.store import Store
from core.threads.merging import ThreadMerger
from core.threads.threads import ReplyRoute
from core.threads.typed_addresses import HeldReplies
from delivery.http.context import ApiServices
from providers.sign_in.sign_in import sign_out
from scenarios.stores.promo import Promos
from scenarios.stores.variables import Variables

_MERGED = "the person was merged with another"
_OVERLAP_MS = 60_000
"""Deliveries are looked through again from so long before: clocks differ."""


async def delete_person(services: ApiServices, tenant: str, user: User) -> None:
    """Delete a person with all that belongs to it. Raises NotFound USER_NOT_FOUND if another call was faster."""
    began = services.core.store.now_ms() - _OVERLAP_MS

    async def delete_file(file: str) -> None:
        with suppress(NotFound):  # it is gone already
            await services.uploads.delete(tenant, file)

    async def erase(since: int = 0) -> None:
        await services.core.deliveries.of_person.erase(tenant, id_text(user.id), since, delete_file)

    async def forget_threads(since: int = 0) -> None:
        threads = await services.core.threads.all_of(tenant, user.id)
        await services.core.deliveries.of_person.erase_threads(tenant, threads, since)
        await services.core.threads.forget(tenant, user.id)

    await _end_all(services, tenant, _names(user), PERSON_DELETED)
    await erase()
    await _forget_dialogs(services.core.store, tenant, user)
    await forget_threads()
    await MessageTemplates(services.core.store).delete_all(tenant, user.id)
    await SeriesStore(services.core.store).delete_all(tenant, user.id)
    await services.core.directory.users.delete(tenant, user.id)
    await _end_all(services, tenant, _names(user), PERSON_DELETED)
    for name in _names(user):
        await services.core.jobs.forget(tenant, name)
    await _forget_dialogs(services.core.store, tenant, user)
    await forget_threads(began)
    await erase(began)


async def merge_people(services: ApiServices, tenant: str, kept: str, other: str) -> Merge:
    """Make one person of two; the jobs and sign-ins under the id of the other end. Raises what `Users.merge` raises."""
    await services.core.directory.users.plan_merge(tenant, kept, other)
    await _end_all(services, tenant, [other], _MERGED)
    await ThreadMerger(services.core.client, services.core.directory, services.core.threads).plan(tenant, kept, other)
    merge = await services.core.directory.users.merge(tenant, kept, other)
    await _end_all(services, tenant, [other], _MERGED)
    await services.core.threads.merge(tenant, kept, other)
    return merge


async def _forget_dialogs(store: Store, tenant: str, user: User) -> None:
    """Delete what the bots have stored of a person: record, @name, dialog, variables, open questions, runs, answers to
    forms, requests; which messages it could reply to, and what it has written and not confirmed; its message of the
    day. Nobody can use its promo codes any more, and its places are free.
    """
    for channel, addresses in user.contacts.items():
        for address in addresses:
            shard, about = store.shard_of_person(tenant, channel, address), (tenant, channel, address)
            await Variables(store, tenant).give_places_back(channel, address)
            while int(await store.run("forget_person", shard, *about)):
                pass
            await store.run("forget_forms", shard, *about)
            await Promos(store, tenant).forget(address)
            await ReceivedMessages(store).forget(*about)
            await HeldReplies(store).forget(tenant, ReplyRoute(channel, address))
            await store.command("DEL", KEYS["day_message"].at(shard, *about), KEYS["fetched_files"].at(shard, *about))
            following = 0
            while following >= 0:
                following = int(await store.run("forget_requests", store.shard_of_tenant(tenant), *about, following))


async def _end_all(services: ApiServices, tenant: str, names: Sequence[str], reason: str) -> None:
    for name in names:
        await services.core.jobs.stop_all(tenant, name, Actor.ADMIN, reason)
        await sign_out(services.core.store, services.sign_in, tenant, name)


def _names(user: User) -> list[str]:
    """Return the names under which jobs and sign-ins are stored: a person that the directory did not know yet has
    CHANNEL:ADDRESS.
    """
    contacts = [f"{channel}:{address}" for channel, addresses in user.contacts.items() for address in addresses]
    return [id_text(user.id), *contacts]
