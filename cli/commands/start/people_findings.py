"""Checks for doctor of the people: how they sign in, which keys end, where they come from, who reads the offices."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, tzinfo
from importlib.util import find_spec
from pathlib import Path

from cli.client.local_times import shown_moment
from cli.client.own_server import stored_api_key
from cli.command import CommandFailed
from cli.commands.start.store_findings import Finding
from cli.services import people_sources
from cli.services.sign_in import check_secret_key, open_identity_providers
from cli.settings.bot_folders import tenants_of_bots
from cli.settings.parsing import read_sync_lines
from cli.settings.settings import Settings
from core.admission.api_keys import REPLACE_FIRST_KEY, SCIM, ApiKeys
from core.directory import Directory
from core.directory.offices import OfficeState, state_of_office, unread_office
from core.directory.syncs import Syncs
from core.errors import SetupError
from core.model.clock import from_ms
from core.model.history_key import DEFAULT_TENANT
from core.redis.store import Store
from core.sessions import Sessions
from core.sessions.sessions import PersonalKey
from providers.sign_in.services import read_services

KEY_ENDS_SOON = timedelta(days=14)
MOST_NAMED = 5
"""Keys that a line names."""


async def check_people(store: Store, settings: Settings) -> AsyncIterator[Finding]:
    """Emit how users sign in to services and people to the console, and whom the settings name."""
    yield await check_sign_in(store, settings)
    async for finding in check_identity_providers(store, settings):
        yield finding
    async for finding in check_named_groups(store, settings):
        yield finding
    async for finding in check_tenants(store, settings):
        yield finding


async def check_tenants(store: Store, settings: Settings) -> AsyncIterator[Finding]:
    """Emit the tenants of settings in which there is nothing: a tenant needs no registration, so a wrong name is no
    error anywhere. The default tenant may be empty.
    """
    named = {
        "ADA_BOT_TENANT": {settings.bot_tenant},
        "ADA_STAFF_WRITES_TO_ALL": settings.staff_writes_to_all,
        "ADA_TENANT_TIMEZONES": settings.tenant_timezones,
    }
    directory, used = Directory(store), {DEFAULT_TENANT, *(one.tenant for one in await ApiKeys(store).list())}
    for name, tenants in named.items():
        for tenant in sorted({*tenants} - used):
            pages = (await directory.users.page(tenant, limit=1), await directory.groups.page(tenant, limit=1))
            if not any(page.items for page in pages):
                detail = f"{name} names {tenant!r}, in which there is no person, group or key"
                yield Finding("tenants", None, detail, f"correct {name}, or add its people")


async def check_named_groups(store: Store, settings: Settings) -> AsyncIterator[Finding]:
    """Emit whether the group of ADA_OPERATORS has members, and that of ADA_OFFICE a reader: what is sent to an unknown
    group reaches nobody, without an error.
    """
    directory, tenant = Directory(store), settings.bot_tenant
    if group := settings.operators:
        (known,) = await directory.groups.lookup(tenant, [group])
        loss = "nobody is informed when a channel stops"
        if known is None:
            repair = f"./ada group add {group}, or correct ADA_OPERATORS"
            yield Finding("operators", False, f"there is no group {group!r} in the tenant {tenant!r}: {loss}", repair)
        elif not (await directory.users.page(tenant, group=group)).items:
            repair = f"./ada group add-member {group} ID"
            yield Finding("operators", False, f"the group {group!r} has no members: {loss}", repair)
        else:
            yield Finding("operators", True, f"the members of the group {group!r}")
    for tenant in tenants_of_bots(settings) if settings.office else ():
        yield await check_office(directory, settings, tenant)


async def check_office(directory: Directory, settings: Settings, tenant: str) -> Finding:
    is_main, group = tenant == settings.bot_tenant, settings.office or ""
    what = "office" if is_main else f"office of {tenant}"
    state = await state_of_office(directory, tenant, group)
    if state is OfficeState.READ:
        return Finding(what, True, f"the members of the group {group!r}")
    repair = {
        OfficeState.NO_GROUP: f"./ada group add {group}, or correct ADA_OFFICE",
        OfficeState.NO_MEMBERS: f"./ada group add-member {group} ID",
        OfficeState.NO_READERS: "./ada user change ID --role staff",
    }[state]
    is_needed = is_main or state is not OfficeState.NO_GROUP
    return Finding(what, False if is_needed else None, unread_office(group, tenant, state), repair)


async def check_syncs(store: Store, file: Path | None = None, zone: tzinfo = UTC) -> AsyncIterator[Finding]:
    """Emit what became of the last run of each source of people of the default tenant. `file`: ADA_SYNCS."""
    try:
        repeated = [words[0] for words in read_sync_lines(file)]
    except SetupError:  # a finding of check_sources
        repeated = []
    syncs = Syncs(store)
    keys = [one.name for one in await ApiKeys(store).list() if SCIM in one.scopes]
    if keys and find_spec("scim2_models") is None:
        detail = f"{', '.join(keys)} has a key, but scim2-models is not installed"
        yield Finding("scim", False, detail, "pip install 'ada[scim]'")
    sources = [one for one in await syncs.all(DEFAULT_TENANT) if one.last]
    missing = [one for one in repeated if one not in [source.source for source in sources]]
    for name in missing:
        yield Finding(f"sync {name}", None, "has not run yet; ./ada up repeats it (ADA_SYNCS)")
    if not sources and not missing:
        yield Finding("sync", None, "no source of people has run (./ada sync, ADA_SYNCS)")
    for one in sources:
        assert one.last
        if one.last.fault:
            again = "repair the source, then start it on the page Synchronisation, or repeat the command"
            remedy = "" if one.last.fault == "leaving" else again  # its sentence says what to do
            yield Finding(f"sync {one.source}", False, f"changed nothing: {one.last.detail or one.last.fault}", remedy)
        elif one.is_late(syncs.now()):
            since = shown_moment(from_ms(one.last.ended), zone)
            remedy = f"start ./ada sync {one.source} … --every again, or forget it on the page Synchronisation"
            yield Finding(f"sync {one.source}", False, f"the program is silent since {since}", remedy)
        else:
            again = f", again each {one.last.every // 60} min" if one.last.every else ""
            by = " by `./ada up`" if again and one.source in repeated else ""
            ended = shown_moment(from_ms(one.last.ended), zone)
            yield Finding(f"sync {one.source}", True, f"{one.last.place}, {ended}{again}{by}")


async def check_sign_in(store: Store, settings: Settings) -> Finding:
    """Return whether users can sign in to outside services, and jobs can use it. Makes no key."""
    if settings.sign_in is None:
        return Finding("sign-in", None, "not set up (ADA_SIGN_IN)")
    try:
        services = ", ".join(sorted(read_services(settings.sign_in)))
        await check_secret_key(store, settings)
    except SetupError as error:
        return Finding("sign-in", False, str(error))
    return Finding("sign-in", True, services)


async def check_identity_providers(store: Store, settings: Settings) -> AsyncIterator[Finding]:
    """Emit whether people can sign in to the console at each identity provider, and what is registered there."""
    try:
        providers = open_identity_providers(store, settings)
    except SetupError as error:
        yield Finding("identity providers", False, str(error))
        return
    if providers is None:
        yield Finding("identity providers", None, "none is set up (ADA_OIDC)")
        return
    for name in providers.titles:
        address = providers.redirect_uri(name)
        if fault := await providers.check(name):
            remedy = "check `issuer` in the file of ADA_OIDC, and that this machine reaches it; sessions go on"
            yield Finding(f"identity provider {name}", False, fault, remedy)
        else:
            logout = f"{address.removesuffix('/callback')}/logout"
            detail = f"answers; register there: redirect URI {address}, back-channel logout {logout}"
            yield Finding(f"identity provider {name}", True, detail)


async def check_first_key(store: Store, settings: Settings) -> Finding:
    """Return whether the first key is valid, with which the verbs call the API."""
    if await ApiKeys(store).was_revoked(settings.api_key or stored_api_key(settings)):
        return Finding("first key", False, "was revoked: the verbs that call the API are refused", REPLACE_FIRST_KEY)
    return Finding("first key", True, "was not revoked")


async def check_personal_keys(store: Store, zone: tzinfo = UTC) -> Finding:
    """Return whose personal keys end soon: their programs are refused from that moment on."""
    sessions = Sessions(store, Directory(store), ApiKeys(store))
    soon, days = datetime.now(UTC) + KEY_ENDS_SOON, KEY_ENDS_SOON.days
    ending = sorted([one async for one in sessions.personal_keys(soon)], key=lambda one: one[2].expires_at)
    if not ending:
        return Finding("personal keys", True, f"none ends within {days} days")
    listed = ", ".join(_ending(*one, zone) for one in ending[:MOST_NAMED])
    more = f" and {len(ending) - MOST_NAMED} more" if ending[MOST_NAMED:] else ""
    remedy = "the person makes another one on its page of the console; ./ada key list shows all"
    return Finding("personal keys", None, f"end within {days} days: {listed}{more}", remedy)


def _ending(tenant: str, person: str, key: PersonalKey, zone: tzinfo) -> str:
    whose = person if tenant == DEFAULT_TENANT else f"{person} (tenant {tenant})"
    return f"{key.name} of {whose} on {key.expires_at.astimezone(zone):%Y-%m-%d}"


async def check_sources(file: Path | None, sign_in: bool) -> AsyncIterator[Finding]:
    """Emit whether each source of people of ADA_SYNCS can be read; with `sign_in` each is read whole, as by a run."""
    try:
        lines = read_sync_lines(file)
    except SetupError as fault:
        yield Finding("syncs", False, str(fault))
        return
    for words in lines:
        what = f"source {words[0]}"
        if not sign_in:
            yield Finding(what, True, "is named in ADA_SYNCS (use --sign-in to read it)")
            continue
        try:
            yield Finding(what, True, await people_sources.check(words))
        except CommandFailed as fault:
            yield Finding(what, False, str(fault).partition("\n")[0], "correct the source, or its line in ADA_SYNCS")
