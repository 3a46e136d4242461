"""The verb redis-url: prints the address of the store, with its password, for programs of the user's own."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.verbs import print_result
from cli.command import Command
from cli.processes.embedded_valkey import running_server
from cli.services.store import redis_url
from cli.settings.settings import load


def declare(parser: ArgumentParser) -> None:
    parser.description = "Prints a secret: it is shown here, and in no log. Write it into no file that others read."


def run(arguments: Namespace) -> int:
    """Print ADA_REDIS_URL, or the address of the embedded server over TCP: every library reads redis://. Raises
    SetupError if no server runs.
    """
    settings = load().settings
    server = None if settings.redis_url else running_server(settings.data / "valkey")
    url = server.tcp_url if server else redis_url(settings)
    return print_result(arguments, {"url": url}, url)


COMMANDS: Mapping[str, Command] = {"redis-url": Command(declare, run)}
