"""The verb key: creates, lists and revokes API keys. Works on the store, not over HTTP."""

import asyncio
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from msgspec import to_builtins

from cli.client.verbs import print_nothing, print_result
from cli.command import SUCCESS, Command
from cli.services.store import open_store
from cli.settings.settings import load
from core.admission.actions import ActionLog, OperatorAction
from core.admission.api_keys import SCOPES, ApiKey, ApiKeys
from core.directory import Directory
from core.redis.store import Store
from core.sessions import Sessions
from core.sessions.sessions import PersonalKey


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="create|list|revoke")
    create_parser = verbs.add_parser("create", help="create a key; its secret is shown once")
    create_parser.add_argument("name", help='what the key is for, for example "schedule"')
    create_parser.add_argument(
        "--scope",
        action="append",
        choices=sorted(SCOPES),
        help="what the key permits (default: send and read); repeat for several",
    )
    create_parser.add_argument("--tenant", default="default")
    verbs.add_parser("list", help="list the keys, and those of people, without their secrets")
    revoke_parser = verbs.add_parser("revoke", help="revoke a key: requests with it are refused")
    revoke_parser.add_argument("id")


def run(arguments: Namespace) -> int:
    return asyncio.run(run_action(arguments))


async def run_action(arguments: Namespace) -> int:
    actions: Mapping[str, Callable[[Store, Namespace], Awaitable[None]]]
    actions = {"create": create, "list": list_all, "revoke": revoke}
    async with open_store(load()) as store:
        await actions[arguments.action](store, arguments)
    return SUCCESS


async def create(store: Store, arguments: Namespace) -> None:
    key, secret = await ApiKeys(store).create(arguments.name, arguments.scope or ["send", "read"], arguments.tenant)
    await ActionLog(store).write(key.tenant, user_action("POST /v1/api-keys", f"/v1/api-keys/{key.id}"))
    text = f"{describe(key)}\n\n  {secret}\n\nThe secret is shown only this time."
    print_result(arguments, {**key.as_json(), "secret": secret}, text)


async def list_all(store: Store, arguments: Namespace) -> None:
    keys = ApiKeys(store)
    found, sessions = await keys.list(), Sessions(store, Directory(store), keys)
    of_people = {key.id: (tenant, person, key) async for tenant, person, key in sessions.personal_keys()}
    if not found and not of_people:
        print_nothing(arguments)
    for key in found:
        print_result(arguments, key.as_json(), describe(key))
    for tenant, person, one in sorted(of_people.values(), key=lambda place: (*place[:2], place[2].expires_at)):
        shown = {**to_builtins(one), "tenant": tenant, "person": person}
        print_result(arguments, shown, describe_personal(tenant, person, one))


async def revoke(store: Store, arguments: Namespace) -> None:
    keys = ApiKeys(store)
    tenants = [key.tenant for key in await keys.list() if key.id == arguments.id]
    await keys.revoke(arguments.id)
    await ActionLog(store).write(tenants[0], user_action("DELETE /v1/api-keys/{id}", f"/v1/api-keys/{arguments.id}"))
    print_result(arguments, {"revoked": arguments.id}, f"revoked {arguments.id}")


def user_action(what: str, target: str, count: int = 1, why: str = "", selected: str = "") -> OperatorAction:
    """Return an entry of the action log: here the caller is known only as a user of this machine. `selected`: the
    filter.
    """
    user = os.environ.get("USER") or f"user {os.getuid()}"  # a container may have no name for its user
    return OperatorAction(f"user:{user}", user, "cli", what, target, count, why, selected)


def describe(key: ApiKey) -> str:
    used = f"last used {_time(key.used_at)}" if key.used_at else "never used"
    scopes = ", ".join(sorted(key.scopes))
    return f"{key.id}  {key.name}  tenant {key.tenant}  may {scopes}  made {_time(key.created_at)}, {used}"


def describe_personal(tenant: str, person: str, key: PersonalKey) -> str:
    used = f"last used {_time(key.used_at)}" if key.used_at else "never used"
    scopes = ", ".join(key.scopes)
    return (
        f"{key.id}  {key.name}  tenant {tenant}  person {person}  may {scopes}  until {_time(key.expires_at)}, {used}"
    )


def _time(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


COMMANDS: Mapping[str, Command] = {"key": Command(declare, run)}
