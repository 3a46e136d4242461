"""The commands of Ada: `./ada VERB …`.

Only the module of the given verb is imported, so that `./ada --help` is fast.
Exit codes: 0 success, 1 failure, 2 wrong usage or settings, 3 an operator is needed.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from importlib import import_module

from cli.command import FAILURE, SUCCESS, WRONG_USAGE, Command, CommandFailed, add_json_option
from core.errors import AdaError, Invalid, SetupError

VERBS: Mapping[str, tuple[str, str]] = {
    # verb: (module, help)
    "demo": ("cli.commands.demo", "send one message over every channel through the sandbox, and show who received it"),
    "up": ("cli.commands.up", "run everything in one process tree, until Ctrl-C"),
    "doctor": ("cli.commands.doctor", "check settings, server, clock and credentials, and show how to repair them"),
    "audit": ("cli.commands.audit", "check the queue's invariants on the running server; --repair repairs what it can"),
    "send": ("cli.commands.deliveries", "send a message, now or at a given time"),
    "track": ("cli.commands.deliveries", "follow a delivery until it is finished"),
    "show": ("cli.commands.deliveries", "show a delivery: its sender, its recipients, and who received it"),
    "cancel": ("cli.commands.deliveries", "cancel a delivery, some of its recipients, or many deliveries"),
    "reschedule": ("cli.commands.deliveries", "change the time of a delivery that is not due yet"),
    "queue": ("cli.commands.queue", "inspect and change the queue: stats, list, peek, kick, bury, purge, cancel"),
    "key": ("cli.commands.api_keys", "create, list and revoke API keys"),
    "serve": ("cli.commands.serve", "serve the HTTP API"),
    "courier": ("cli.commands.courier", "deliver through one channel"),
    "bench": ("cli.commands.bench", "measure lag, throughput, cost and memory, each on its own server"),
    "sandbox": ("cli.commands.sandbox", "simulate the providers on this machine, with an inbox page"),
    "docs": ("cli.commands.docs", "generate the pages that come from the code: keys, scripts, states"),
    "soak": (
        "cli.commands.development",
        "run the queue for minutes while processes are killed, frozen and disconnected, and count lost tasks",
    ),
    "lock": ("cli.commands.development", "resolve the dependencies again and write the lock files"),
    "check": (
        "cli.commands.development",
        "run all checks of CI: format, lint, types, layers, and the tests with nothing skipped",
    ),
    "test": (
        "cli.commands.development",
        "run the tests; further arguments go to pytest; --rows lists which test shows which requirement",
    ),
}


def main(args: Sequence[str] | None = None) -> int:
    """Runs one verb; returns its exit code. An error is printed on stderr, in one line where possible."""
    try:
        return run(list(sys.argv[1:] if args is None else args))
    except CommandFailed as error:
        return print_error(error, error.code)
    except (SetupError, Invalid) as error:
        return print_error(error, WRONG_USAGE)
    except AdaError as error:
        return print_error(error, FAILURE)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `ada … | head`: the reader has closed the pipe
        sys.stderr.close()
        return SUCCESS


def print_error(error: Exception, code: int) -> int:
    print(f"ada: {error}", file=sys.stderr)
    return code


def run(args: list[str]) -> int:
    verb = next((arg for arg in args if not arg.startswith("-")), None)
    command = command_of(verb) if verb is not None and verb in VERBS else None
    parser = parser_for(verb, command)
    if command is None:
        parser.parse_args(args or ["--help"])
        raise CommandFailed("nothing to do")
    return command.run(parse(parser, command, args))


def command_of(verb: str) -> Command:
    module = import_module(VERBS[verb][0])
    commands: Mapping[str, Command] = module.COMMANDS
    return commands[verb]


def parser_for(verb: str | None, command: Command | None) -> ArgumentParser:
    """A parser with all verbs, and with the arguments of the given one."""
    parser = ArgumentParser(prog="ada", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(metavar="VERB", title="verbs", dest="verb", required=True)
    for name, (_, text) in sorted(VERBS.items()):
        subparser = verbs.add_parser(name, help=text, description=text, allow_abbrev=False)
        add_json_option(subparser)
        if name == verb and command is not None:
            command.declare(subparser)
    return parser


def parse(parser: ArgumentParser, command: Command, args: list[str]) -> Namespace:
    if not command.takes_rest:
        return parser.parse_args(args)
    arguments, rest = parser.parse_known_args(args)
    arguments.rest = rest
    return arguments
