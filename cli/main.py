"""The commands of Ada: `./ada VERB …`.

Only the module of the verb that was asked for is imported, so that `./ada --help` costs nothing.
Exit codes: 0 good, 1 no, 2 wrong usage, 3 stopped for good (an operator is needed).
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from importlib import import_module

from cli.command import GOOD, NO, WRONG_USAGE, Command, NotDone, add_json
from core.errors import AdaError, Invalid, SetupError

VERBS: Mapping[str, tuple[str, str]] = {
    # verb: (module, what it does)
    "demo": ("cli.commands.demo", "send one message over every channel through the sandbox, and show who got it"),
    "up": ("cli.commands.up", "run everything in one process tree, until Ctrl-C"),
    "doctor": ("cli.commands.doctor", "look at settings, server, clock and credentials, and say what mends them"),
    "audit": (
        "cli.commands.audit",
        "prove the queue's invariants on the running server; --repair mends what can be mended",
    ),
    "send": ("cli.commands.deliveries", "send a message to people, now or at a set moment"),
    "track": ("cli.commands.deliveries", "follow a delivery until it is finished"),
    "show": ("cli.commands.deliveries", "show who sent what, and who got it and how"),
    "cancel": ("cli.commands.deliveries", "cancel a delivery, some of its recipients, or many deliveries"),
    "reschedule": ("cli.commands.deliveries", "move a delivery that is not due yet"),
    "queue": ("cli.commands.queue", "look into the queue: stats, list, peek; kick, bury, purge, cancel"),
    "key": ("cli.commands.api_keys", "make, list and revoke API keys"),
    "serve": ("cli.commands.serve", "answer HTTP"),
    "courier": ("cli.commands.courier", "deliver through one channel"),
    "bench": ("cli.commands.bench", "measure lag, throughput, cost and memory, each on a server of its own"),
    "sandbox": ("cli.commands.sandbox", "play the providers on this machine, with an inbox page"),
    "docs": ("cli.commands.docs", "make the pages that come from the code: keys, scripts, states"),
    "soak": (
        "cli.commands.development",
        "run the queue for minutes while everything is killed, frozen and cut off, and count what is lost",
    ),
    "lock": ("cli.commands.development", "resolve the dependencies anew into the lock files"),
    "check": (
        "cli.commands.development",
        "everything CI runs: format, lint, types, layers, tests with nothing skipped",
    ),
    "test": (
        "cli.commands.development",
        "run the tests; further words go to pytest; --rows shows what is tested where",
    ),
}


def main(words: Sequence[str] | None = None) -> int:
    """Runs one verb and answers the exit code; a complaint is one sentence on stderr."""
    given = list(sys.argv[1:] if words is None else words)
    try:
        return run(given)
    except NotDone as refusal:
        return complain(refusal, refusal.code)
    except (SetupError, Invalid) as fault:
        return complain(fault, WRONG_USAGE)
    except AdaError as fault:
        return complain(fault, NO)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `ada … | head`: the reader has seen enough
        sys.stderr.close()
        return GOOD


def complain(fault: Exception, code: int) -> int:
    print(f"ada: {fault}", file=sys.stderr)
    return code


def run(words: list[str]) -> int:
    verb = next((word for word in words if not word.startswith("-")), None)
    command = command_of(verb) if verb is not None and verb in VERBS else None
    parser = parser_for(verb, command)
    if command is None:
        parser.parse_args(words or ["--help"])
        raise NotDone("nothing to do")
    return command.run(parse(parser, command, words))


def command_of(verb: str) -> Command:
    module = import_module(VERBS[verb][0])
    commands: Mapping[str, Command] = module.COMMANDS
    return commands[verb]


def parser_for(verb: str | None, command: Command | None) -> ArgumentParser:
    """The whole tree by name, with the arguments of the one verb in hand."""
    parser = ArgumentParser(prog="ada", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(metavar="VERB", title="verbs", dest="verb", required=True)
    for name, (_, duty) in sorted(VERBS.items()):
        one = verbs.add_parser(name, help=duty, description=duty, allow_abbrev=False)
        add_json(one)
        if name == verb and command is not None:
            command.declare(one)
    return parser


def parse(parser: ArgumentParser, command: Command, words: list[str]) -> Namespace:
    if not command.takes_rest:
        return parser.parse_args(words)
    arguments, rest = parser.parse_known_args(words)
    arguments.rest = rest
    return arguments
