"""The verb sandbox: plays Telegram, VK and an SMS gateway on this machine, with an inbox page."""

import asyncio
import json
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path

from cli.command import GOOD, Command, NotDone
from cli.processes.embedded_valkey import free_port, is_free
from cli.processes.startup import log_to_stderr, stop_requested
from cli.processes.supervisor import announce
from cli.settings.parsing import address
from cli.settings.settings import load
from sandbox.sandbox import Sandbox

PORTS = ("web_port", "telegram_port", "vk_port", "sms_port")


def declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--http", default=None, metavar="HOST:PORT", help="where the inbox page is; by default a free port"
    )
    parser.add_argument("--inbound-url", metavar="URL", help="where the SMS gateway hands in messages from people")


def run(arguments: Namespace) -> int:
    settings = load().settings
    log_to_stderr(settings)
    return asyncio.run(play(settings.data.absolute() / "sandbox", arguments))


async def play(directory: Path, arguments: Namespace) -> int:
    stop = stop_requested()
    sandbox = made(directory, arguments)
    try:
        await sandbox.start()
    except OSError as fault:
        raise NotDone(f"the sandbox cannot listen: {fault}") from fault
    tell(sandbox, arguments.json)
    await stop.wait()
    await sandbox.stop()
    return GOOD


def made(directory: Path, arguments: Namespace) -> Sandbox:
    ports = remembered_ports(directory / "ports.json")
    host = "127.0.0.1"
    if arguments.http:
        page = address(arguments.http)
        host, ports["web_port"] = page.host, page.port
    return Sandbox(directory, host, sms_inbound_url=arguments.inbound_url, **ports)


def remembered_ports(file: Path) -> dict[str, int]:
    """The ports of the last time if they are still free: who was told an address may keep it."""
    before = json.loads(file.read_text()) if file.exists() else {}
    ports = {name: before[name] if is_free(before.get(name, 0)) and name in before else free_port() for name in PORTS}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(ports))
    return ports


def tell(sandbox: Sandbox, as_json: bool) -> None:
    """For programs the announcement alone; for people also the lines to paste into a shell."""
    if not as_json:
        print(f"The inbox is at {sandbox.page_url}. To send through the sandbox, set:\n")
        for name, value in sandbox.environment.items():
            print(f"export {name}={shlex.quote(value)}")
        print()
    announce(page=sandbox.page_url, environment=sandbox.environment)


COMMANDS: Mapping[str, Command] = {"sandbox": Command(declare, run)}
