"""The verb key: creates, lists and revokes API keys, and those of people. Works on the store, not over HTTP."""

import asyncio
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo

from msgspec import to_builtins

from cli.client.local_times import shown_moment
from cli.client.own_server import stored_api_key
from cli.client.verbs import print_nothing, print_result
from cli.command import SUCCESS, WRONG_USAGE, Command, CommandFailed
from cli.services.store import open_store
from cli.settings.settings import load
from core.admission.actions import ActionLog, OperatorAction
from core.admission.api_keys import REPLACE_FIRST_KEY, SCOPES, ApiKey, ApiKeys
from core.directory import Directory
from core.model.people import id_text
from core.redis.store import Store
from core.sessions import PersonalKeys, Sessions
from core.sessions.personal_keys import DEFAULT_DAYS, LONGEST_DAYS
from core.sessions.sessions import CALENDAR, Identity, PersonalKey

_SCOPES = ("send", "read")
_PERSONAL = "/v1/me/keys"


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="create|list|revoke")
    create_parser = verbs.add_parser("create", help="create a key; its secret is shown once")
    create_parser.add_argument("name", help='what the key is for, for example "schedule"')
    create_parser.add_argument(
        "--scope",
        action="append",
        choices=sorted({*SCOPES, CALENDAR}),
        help="what the key permits (default: send and read); repeat for several",
    )
    create_parser.add_argument("--tenant", default="default")
    create_parser.add_argument("--person", metavar="ID", help="a key of this person, with some of its rights")
    create_parser.add_argument(
        "--days", type=int, help=f"how long a person's key is valid (1 to {LONGEST_DAYS}, default: {DEFAULT_DAYS})"
    )
    verbs.add_parser("list", help="list the keys, and those of people, without their secrets")
    revoke_parser = verbs.add_parser("revoke", help="revoke a key, also of a person: requests with it are refused")
    revoke_parser.add_argument("id")


def run(arguments: Namespace) -> int:
    return asyncio.run(run_action(arguments))


async def run_action(arguments: Namespace) -> int:
    actions: Mapping[str, Callable[[Store, Namespace], Awaitable[None]]]
    is_personal = getattr(arguments, "person", None) is not None
    actions = {"create": create_personal if is_personal else create, "list": list_all, "revoke": revoke}
    configuration = load()
    arguments.settings, arguments.zone = configuration.settings, configuration.settings.timezone
    async with open_store(configuration) as store:
        await actions[arguments.action](store, arguments)
    return SUCCESS


async def create(store: Store, arguments: Namespace) -> None:
    if arguments.days is not None:
        raise CommandFailed("--days is of a person's key: --person ID; other keys are valid until revoked", WRONG_USAGE)
    key, secret = await ApiKeys(store).create(arguments.name, arguments.scope or _SCOPES, arguments.tenant)
    await ActionLog(store).write(key.tenant, user_action("POST /v1/api-keys", f"/v1/api-keys/{key.id}"))
    print_result(
        arguments, {**key.as_json(), "secret": secret}, f"{describe(key, arguments.zone)}\n\n{_shown_once(secret)}"
    )


async def create_personal(store: Store, arguments: Namespace) -> None:
    """Create a key of a person, as that does on its page of the console."""
    days = DEFAULT_DAYS if arguments.days is None else arguments.days
    if not 1 <= days <= LONGEST_DAYS:
        raise CommandFailed(f"--days is a number from 1 to {LONGEST_DAYS}", WRONG_USAGE)
    tenant, scopes = arguments.tenant, arguments.scope or _SCOPES
    user = await Directory(store).users.find(tenant, arguments.person)
    if user.blocked:
        raise CommandFailed(f"{id_text(user.id)} is blocked, and a key of a blocked person is refused")
    keys, identity = _personal_keys(store), Identity.of_person(tenant, user, "", datetime.now(UTC))
    key, secret = await keys.create(identity, arguments.name, scopes, timedelta(days=days))
    person = id_text(user.id)
    await _log_personal(store, tenant, f"POST {_PERSONAL}", key.id, person)
    shown = f"/v1/calendar/{secret}.ics" if CALENDAR in key.scopes else secret
    text = f"{describe_personal(tenant, person, key, arguments.zone)}\n\n{_shown_once(shown)}"
    print_result(arguments, {**_as_json(tenant, person, key), "secret": secret}, text)


def _shown_once(secret: str) -> str:
    return f"  {secret}\n\nThe secret is shown only this time."


def _as_json(tenant: str, person: str, key: PersonalKey) -> dict[str, object]:
    return {**to_builtins(key), "tenant": tenant, "person": person}


def _personal_keys(store: Store) -> PersonalKeys:
    return PersonalKeys(Sessions(store, Directory(store), ApiKeys(store)))


async def _log_personal(store: Store, tenant: str, what: str, key_id: str, person: str) -> None:
    action = user_action(what, f"{_PERSONAL}/{key_id}", selected=f"person={person}")
    await ActionLog(store).write(tenant, action)


async def list_all(store: Store, arguments: Namespace) -> None:
    keys = ApiKeys(store)
    found, sessions = await keys.list(), Sessions(store, Directory(store), keys)
    of_people = [one async for one in sessions.personal_keys()]
    if not found and not of_people:
        print_nothing(arguments)
    for key in found:
        print_result(arguments, key.as_json(), describe(key, arguments.zone))
    for tenant, person, one in sorted(of_people, key=lambda place: (*place[:2], place[2].expires_at)):
        print_result(arguments, _as_json(tenant, person, one), describe_personal(tenant, person, one, arguments.zone))


async def revoke(store: Store, arguments: Namespace) -> None:
    keys, settings = ApiKeys(store), arguments.settings
    tenants = [key.tenant for key in await keys.list() if key.id == arguments.id]
    first = await keys.find(settings.api_key or stored_api_key(settings))
    text = f"revoked {arguments.id}"
    if first and first.id == arguments.id:
        text += f"; it is the first key, which `./ada send` and others use. To replace it: {REPLACE_FIRST_KEY}"
    if tenants:
        await keys.revoke(arguments.id)
        action = user_action("DELETE /v1/api-keys/{id}", f"/v1/api-keys/{arguments.id}")
        await ActionLog(store).write(tenants[0], action)
    else:
        await revoke_personal(store, arguments.id)
    print_result(arguments, {"revoked": arguments.id}, text)


async def revoke_personal(store: Store, key_id: str) -> None:
    """Revoke a key of a person. Raises NotFound KEY_NOT_FOUND."""
    personal = _personal_keys(store)
    tenant, person = await personal.revoke_of_anybody(key_id)
    await _log_personal(store, tenant, f"DELETE {_PERSONAL}/{{id}}", key_id, person)


def user_action(what: str, target: str, count: int = 1, why: str = "", selected: str = "") -> OperatorAction:
    """Return an entry of the action log: here the caller is known only as a user of this machine. `selected`: the
    filter.
    """
    user = os.environ.get("USER") or f"user {os.getuid()}"  # a container may have no name for its user
    return OperatorAction(f"user:{user}", user, "cli", what, target, count, why, selected)


def describe(key: ApiKey, zone: tzinfo) -> str:
    used = f"last used {shown_moment(key.used_at, zone)}" if key.used_at else "never used"
    scopes = ", ".join(sorted(key.scopes))
    return f"{key.id}  {key.name}  tenant {key.tenant}  may {scopes}  made {shown_moment(key.created_at, zone)}, {used}"


def describe_personal(tenant: str, person: str, key: PersonalKey, zone: tzinfo) -> str:
    used = f"last used {shown_moment(key.used_at, zone)}" if key.used_at else "never used"
    scopes = ", ".join(key.scopes)
    whose, until = f"tenant {tenant}  person {person}", shown_moment(key.expires_at, zone)
    return f"{key.id}  {key.name}  {whose}  may {scopes}  until {until}, {used}"


COMMANDS: Mapping[str, Command] = {"key": Command(declare, run)}
