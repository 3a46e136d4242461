"""The verb key: makes, lists and revokes API keys, straight in the store."""

import asyncio
import json
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping

from cli.command import GOOD, Command, add_json
from cli.processes.startup import opened_store
from cli.settings.settings import load
from core.admission.api_keys import SCOPES, ApiKey, ApiKeys


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="create|list|revoke")
    creating = verbs.add_parser("create", help="make a key; its secret is shown once")
    creating.add_argument("name", help="what it is for")
    creating.add_argument(
        "--scope", action="append", choices=sorted(SCOPES), help="what it may; by default send and read"
    )
    creating.add_argument("--tenant", default="default")
    listing = verbs.add_parser("list", help="show the keys, without their secrets")
    revoking = verbs.add_parser("revoke", help="a key that is revoked opens nothing any more")
    revoking.add_argument("id")
    for one in (creating, listing, revoking):
        add_json(one, default=SUPPRESS)


def run(arguments: Namespace) -> int:
    return asyncio.run(act(arguments))


async def act(arguments: Namespace) -> int:
    actions: Mapping[str, Callable[[ApiKeys, Namespace], Awaitable[None]]]
    actions = {"create": create, "list": show_all, "revoke": revoke}
    async with opened_store(load()) as store:
        await actions[arguments.action](ApiKeys(store), arguments)
    return GOOD


async def create(access: ApiKeys, arguments: Namespace) -> None:
    key, secret = await access.create(arguments.name, arguments.scope or ["send", "read"], arguments.tenant)
    if arguments.json:
        print(json.dumps({**key.as_json(), "secret": secret}, ensure_ascii=False))
    else:
        print(f"{described(key)}\n\n  {secret}\n\nThis is the only time that the secret is shown.")


async def show_all(access: ApiKeys, arguments: Namespace) -> None:
    for key in await access.list():
        print(json.dumps(key.as_json(), ensure_ascii=False) if arguments.json else described(key))


async def revoke(access: ApiKeys, arguments: Namespace) -> None:
    await access.revoke(arguments.id)
    print(json.dumps({"revoked": arguments.id}) if arguments.json else f"revoked {arguments.id}")


def described(key: ApiKey) -> str:
    return f"{key.id}  {key.name}  tenant {key.tenant}  may {', '.join(sorted(key.scopes))}"


COMMANDS: Mapping[str, Command] = {"key": Command(declare, run)}
