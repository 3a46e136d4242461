"""The commands of Ada: `./ada VERB …`.

Only the module of the given verb is imported, so that `./ada --help` is fast and needs no libraries.
"""

import re
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from cli import VERSION
from cli.command import FAILURE, SUCCESS, WRONG_USAGE, Command, CommandFailed, add_json_option, closest
from core.errors import AdaError, Invalid, SetupError

_KINDS = {"int": "a whole number", "float": "a number"}

GROUPS: Mapping[str, Sequence[str]] = {
    "Start": ("demo", "up", "doctor"),
    "Send and follow messages": (
        "send",
        "track",
        "show",
        "series",
        "costs",
        "answers",
        "inbox",
        "reply",
        "cancel",
        "reschedule",
        "templates",
    ),
    "Keep the directory": ("user", "contact", "group", "supergroup", "owner", "import", "sync", "export"),
    "Write bots": ("scenarios", "forms", "texts"),
    "Look after an installation": (
        "key",
        "webhook",
        "queue",
        "figures",
        "processes",
        "accounts",
        "jobs",
        "sign-in",
        "actions",
        "audit",
        "redis-url",
        "cluster",
        "backup",
        "restore",
        "migrate",
    ),
    "Run one part by itself": ("serve", "courier", "bot", "sandbox"),
    "Develop Ada": ("test", "check", "bench", "prove", "soak", "docs", "lock"),
}
"""The commands as the help shows them."""

COMMON = """`ada COMMAND --help` shows the options of a command.
Exit codes: 0 it worked, 1 it did not, 2 wrong usage or settings, 3 the account of a channel needs attention."""


class Parser(ArgumentParser):
    """A parser that raises CommandFailed where argparse prints a message and exits. So do its subcommands."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._verbs: Mapping[str, Parser] = {}

    def add_subparsers(self, **options: Any) -> Any:
        verbs = super().add_subparsers(**options)
        self._verbs = verbs.choices
        return verbs

    @property
    def actions(self) -> Collection["Parser"]:
        """The parsers of the subcommands."""
        return self._verbs.values()

    def error(self, message: str) -> NoReturn:
        raise wrong_usage(explain(message), self.prog)

    def refuse_unknown(self, unknown: Sequence[str], given: Sequence[str]) -> None:
        """Refuse unknown arguments. Raises CommandFailed if there are arguments that this command does not have.
        `given`: all arguments; a subcommand among them does not have the unknown ones.
        """
        if not unknown:
            return
        verb = next((word for word in given if word in self._verbs), None)
        if verb is not None:
            self._verbs[verb].refuse_unknown(unknown, ())
        name = unknown[0].partition("=")[0]
        options = sorted(set(re.findall(r"--[a-z][a-z-]*", self.format_help())))
        raise wrong_usage(f"{self.prog} does not know {name}{closest(name, options)}", self.prog)


def wrong_usage(message: str, prog: str) -> CommandFailed:
    return CommandFailed(f"{message}\n     `{prog} --help` shows what is possible", WRONG_USAGE)


_ENUM_MEMBER = re.compile(r"<\w+\.\w+: ('[^']*')>")


def explain(message: str) -> str:
    """Return a message of argparse in plain words. A message of another form stays as it is."""
    if found := re.fullmatch(r"argument .+: invalid choice: '(.*)' \(choose from (.*)\)", message):
        known = _ENUM_MEMBER.sub(r"\1", found[2]).replace("'", "").split(", ")
        return f"{found[1]!r} is not one of {', '.join(known)}{closest(found[1], known)}"
    if found := re.fullmatch(r"argument (.+): invalid (\w+) value: '(.*)'", message):
        return f"{found[1]}: {found[3]!r} is not {_KINDS.get(found[2], 'a valid value')}"
    if found := re.fullmatch(r"argument (--[a-z-]+).*: expected one argument", message):
        return f"{found[1]} needs a value; one that begins with - is written {found[1]}=-…"
    if found := re.fullmatch(r"the following arguments are required: (.*)", message):
        return f"these are missing: {found[1]}"
    return message.removeprefix("argument ")


VERBS: Mapping[str, tuple[str, str]] = {
    # verb: (module of cli.commands, help)
    "demo": (
        "start.demo",
        "try it: send one message over every simulated channel and show who received it",
    ),
    "up": ("start.up", "start everything and keep it running until Ctrl-C"),
    "doctor": (
        "start.doctor",
        "check the installation: settings, server, clock, accounts; says what to change",
    ),
    "send": ("messages.deliveries", "send a message to people or groups, now or at a given time"),
    "track": ("messages.deliveries", "watch a message being delivered, until it is finished"),
    "show": ("messages.deliveries", "show a message: who received it over which channel, and who did not"),
    "series": ("messages.deliveries", "list, change and stop messages that are sent again and again"),
    "answers": ("messages.deliveries", "show who has confirmed or answered a message that asks for it"),
    "inbox": ("messages.threads", "show what people have replied to messages, and read a thread"),
    "reply": ("messages.threads", "answer a person that has replied to a message"),
    "costs": ("installation.reports", "show what was sent and is paid, by month, channel and sender"),
    "cancel": (
        "messages.deliveries",
        "cancel a message, for all or some of its recipients, or many messages at once",
    ),
    "reschedule": ("messages.deliveries", "change the time of a message that is not due yet"),
    "templates": ("messages.templates", "list, show, add and delete messages that are kept to be sent again"),
    "user": ("directory.users", "list, show, add, change and remove the people of the directory"),
    "contact": ("directory.users", "list, add and remove the contacts of a person"),
    "group": ("directory.groups", "list, show, add, change and remove groups and their members"),
    "supergroup": ("directory.groups", "list, show, add, change and remove sets of groups"),
    "owner": ("directory.users", "show and change who may write to which groups"),
    "import": (
        "directory.csv_files",
        "read people, groups and their relations from a CSV file: all of it or nothing",
    ),
    "sync": ("directory.sync", "keep the people of a source, such as 1c, as its file says: who has left is blocked"),
    "export": ("directory.csv_files", "write people, groups, or who received a message, to a CSV file"),
    "actions": ("installation.reports", "list what was changed for others, who did it and why"),
    "key": ("installation.api_keys", "create, list and revoke API keys"),
    "queue": (
        "installation.queue",
        "show what waits to be sent, and change it: stats, list, lanes, peek, kick, bury, purge, cancel",
    ),
    "processes": (
        "installation.processes",
        "list what runs and what has failed; start a process again, quiet, resume, stop or test one",
    ),
    "accounts": (
        "installation.accounts",
        "list the accounts of the channels, and set their settings, which are stored encrypted",
    ),
    "figures": (
        "installation.reports",
        "show what happened in the last hour or week: messages, tasks, delays, failures",
    ),
    "webhook": (
        "installation.webhooks",
        "notify HTTP addresses of outcomes and ends: add, list, remove, test, attempts, replay",
    ),
    "audit": (
        "installation.audit",
        "check that no message is lost, stuck or miscounted; --repair repairs what is safe",
    ),
    "redis-url": (
        "installation.store",
        "print the address of the store with its password, for programs of your own",
    ),
    "cluster": ("installation.store", "print which primary has which shards, and the moves that balance their load"),
    "backup": ("installation.backups", "save all data of the server in one file, also while Ada runs"),
    "restore": ("installation.backups", "put the data of a backup on the server: all of it or nothing"),
    "migrate": ("installation.backups", "move all data to another server or a cluster, while Ada is stopped"),
    "scenarios": (
        "bots.scenarios",
        "bots written in YAML: check and try one, write a new one, print the schema for editors",
    ),
    "forms": ("bots.forms", "show what people have answered to the forms of the bots, as a table or as CSV"),
    "texts": (
        "installation.texts",
        "list what Ada says to people by itself, and write the files in which to change it",
    ),
    "jobs": (
        "installation.jobs",
        "run the long-running jobs of users; list, show, start, pause, resume, stop them, show their log",
    ),
    "sign-in": (
        "installation.sign_in",
        "sign users in to outside services, list and end their sign-ins, look after the key of their tokens",
    ),
    "serve": ("parts.serve", "run only the HTTP API and the web console"),
    "bot": ("parts.bot", "run only the bot of one channel, which answers what people write"),
    "courier": ("parts.courier", "run only one channel, for example `courier telegram`"),
    "sandbox": (
        "parts.sandbox",
        "run only the simulated Telegram, VK, MAX, SMS and e-mail, with a page of received messages",
    ),
    "test": (
        "development.checks",
        "run the tests; further options go to pytest; --rows lists what each test shows",
    ),
    "check": ("development.checks", "run everything that CI runs: format, lint, types, layers, tests"),
    "bench": ("development.checks", "measure speed, delay, cost and memory, each on its own server"),
    "prove": ("development.prove", "run the long forms of the tests; names of parts select some"),
    "soak": ("development.checks", "run the queue for minutes, kill its processes, and count lost tasks"),
    "docs": ("development.docs", "write the pages of docs/ that come from the code"),
    "lock": ("development.checks", "choose the versions of all libraries again and write the lock files"),
}


def main(args: Sequence[str] | None = None) -> int:
    """Run one verb; return its exit code. An error is printed on stderr, in one line where possible."""
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
    if verb is not None and verb not in VERBS:
        raise wrong_usage(f"{verb!r} is not a command{closest(verb, list(VERBS))}", "ada")
    if verb is None:
        parser_for(None, None).parse_args(args or ["--help"])
        raise wrong_usage("which command?", "ada")
    command = command_of(verb)
    return command.run(parse(verb, command, args))


def command_of(verb: str) -> Command:
    module = import_module(f"cli.commands.{VERBS[verb][0]}")
    commands: Mapping[str, Command] = module.COMMANDS
    return commands[verb]


def parser_for(verb: str | None, command: Command | None) -> Parser:
    """Return the parser of one verb, within that of `ada`; without a verb the latter alone."""
    parser = Parser(
        prog="ada",
        usage="ada COMMAND [options]",
        description="Ada sends one message to many people over Telegram, VK, MAX, SMS, e-mail, and shows who got it.",
        epilog=overview(),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ada {VERSION}", help="show the version and exit")
    add_json_option(parser)
    if verb is not None and command is not None:
        verbs = parser.add_subparsers(dest="verb", required=True, prog="ada", help=SUPPRESS)
        declare(verbs.add_parser(verb, description=VERBS[verb][1], allow_abbrev=False), command)
    return parser


def declare(parser: Parser, command: Command) -> Parser:
    add_json_option(parser, default=SUPPRESS)
    command.declare(parser)
    for action in parser.actions:
        add_json_option(action, default=SUPPRESS)
    return parser


def overview() -> str:
    """Return all commands by group, and what is common to them."""
    lines = []
    for title, verbs in GROUPS.items():
        lines += [f"{title}:", *(f"  {verb:<11} {VERBS[verb][1]}" for verb in verbs), ""]
    return "\n".join([*lines, COMMON])


def parse(verb: str, command: Command, args: list[str]) -> Namespace:
    arguments, rest = parser_for(verb, command).parse_known_args(args)
    if command.takes_rest:
        arguments.rest = rest
    else:
        declare(Parser(prog=f"ada {verb}"), command).refuse_unknown(rest, args)
    return arguments
