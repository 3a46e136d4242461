"""The verb sign-in: begins and ends sign-ins of users to outside services, and replaces their key.

Works on the store. Exit code 1: the user was not signed in.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from cli.client.verbs import print_result
from cli.command import Command, CommandFailed
from cli.commands.start.installation import start_valkey
from cli.processes import embedded_valkey
from cli.processes.supervisor import Supervisor
from cli.services.sign_in import open_sign_in
from cli.services.store import open_store
from cli.settings.settings import Settings, load
from core.errors import SetupError
from core.redis.store import Store
from providers.sign_in import SignIn
from providers.sign_in.sign_in import sign_out as sign_user_out
from providers.sign_in.stored import reset, services_of


def declare(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="begin|list|out|rotate|reset")
    begin_parser = actions.add_parser("begin", help="print the address at which a user signs in, for ten minutes")
    list_parser = actions.add_parser("list", help="list the services that a user has signed in to")
    out_parser = actions.add_parser("out", help="sign a user out of a service")
    actions.add_parser("rotate", help="encrypt all tokens with the first key of ADA_SECRET_KEY")
    reset_parser = actions.add_parser("reset", help="sign all users out, if the key of the tokens is lost")
    reset_parser.add_argument("--yes", action="store_true", required=True, help="really")
    for subparser in (begin_parser, list_parser, out_parser):
        subparser.add_argument("user", help="the id of the user, for example 42")
    for subparser in (begin_parser, out_parser):
        subparser.add_argument("service", help="as the file of ADA_SIGN_IN names it")
    for subparser in (begin_parser, list_parser, out_parser):
        subparser.add_argument("--tenant", default="default", help="whose user (default)")


def run(arguments: Namespace) -> int:
    return asyncio.run(run_action(arguments))


async def run_action(arguments: Namespace) -> int:
    configuration = load()
    async with AsyncExitStack() as opened:
        if arguments.action == "reset":
            await opened.enter_async_context(running_server(configuration.settings))
        store = await opened.enter_async_context(open_store(configuration))
        return await ACTIONS[arguments.action](store, configuration.settings, arguments)


@asynccontextmanager
async def running_server(settings: Settings) -> AsyncIterator[None]:
    """Start the embedded server of ADA_DATA if it does not run: without the key `./ada up` does not start it."""
    directory = settings.data.absolute() / "valkey"
    if settings.redis_url or not directory.exists() or embedded_valkey.running_url(directory):
        yield
        return
    supervisor = Supervisor(lambda process, line: None)
    with embedded_valkey.locked(directory) as lock:
        try:
            await start_valkey(supervisor, directory, lock)
            yield
        finally:
            await supervisor.stop()


async def begin(store: Store, settings: Settings, arguments: Namespace) -> int:
    sign_in = await _opened(store, settings)
    url = await sign_in.begin(arguments.tenant, arguments.service, arguments.user)
    return print_result(arguments, {"url": url}, url)


async def list_services(store: Store, settings: Settings, arguments: Namespace) -> int:
    found = await services_of(store, arguments.tenant, arguments.user)
    return print_result(arguments, {"services": found}, "\n".join(found) or "not signed in")


async def sign_out(store: Store, settings: Settings, arguments: Namespace) -> int:
    sign_in = await open_sign_in(store, settings)
    if not await sign_user_out(store, sign_in, arguments.tenant, arguments.user, arguments.service):
        raise CommandFailed(f"{arguments.user} is not signed in to {arguments.service}")
    return print_result(arguments, {"signed_out": True}, f"{arguments.user} is signed out of {arguments.service}")


async def rotate(store: Store, settings: Settings, arguments: Namespace) -> int:
    count = await (await _opened(store, settings)).tokens.rotate()
    return print_result(arguments, {"rotated": count}, f"encrypted with the first key: {count}")


async def reset_all(store: Store, settings: Settings, arguments: Namespace) -> int:
    count = await reset(store)
    return print_result(arguments, {"signed_out": count}, f"signed out: {count}")


async def _opened(store: Store, settings: Settings) -> SignIn:
    """Return the sign-in of this installation. Raises SetupError."""
    sign_in = await open_sign_in(store, settings)
    if sign_in is None:
        raise SetupError("ADA_SIGN_IN is not set: there is no service to sign in to")
    return sign_in


Action = Callable[[Store, Settings, Namespace], Awaitable[int]]

ACTIONS: Mapping[str, Action] = {
    "begin": begin,
    "list": list_services,
    "out": sign_out,
    "rotate": rotate,
    "reset": reset_all,
}

COMMANDS = {"sign-in": Command(declare, run)}
