"""The command line: exit codes, fast help, and the script `ada`."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.main import GROUPS, VERBS, command_of, parse, parser_for
from tests.support.forked import run_ada
from tests.support.paths import ROOT


def ada(*args: str, cwd: Path = ROOT, script: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(script)] if script else [sys.executable, "-m", "cli"]
    return subprocess.run([*command, *args], cwd=cwd, capture_output=True, text=True, env=environment())


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ADA_")} | {
        "PYTHONPATH": str(ROOT)
    }


def test_help_lists_every_verb_without_importing_their_modules() -> None:
    script = (
        "import sys; from cli.main import main\ntry: main(['--help'])\nexcept SystemExit: print(sorted(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True).stdout
    assert all(verb in shown for verb in VERBS)
    heavy = ("redis", "aiohttp", "telethon", "vkbottle", "pydantic", "asyncio", "yaml")
    assert not any(f"'{name}'" in shown for name in heavy)


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ada("--version").stdout == f"ada {project['version']}\n"


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_a_command_and_a_help_text(verb: str) -> None:
    command = command_of(verb)
    assert callable(command.run)
    assert verb in parser_for(verb, command).format_help()


@pytest.mark.parametrize("args", [("fly",), ("lock", "--nonsense"), ("--nonsense",)])
def test_wrong_usage_exits_with_code_two(args: tuple[str, ...]) -> None:
    done = run_ada(args, environment(), ROOT)
    assert done.returncode == 2
    assert done.stderr


def test_help_shows_every_command_once_in_a_group() -> None:
    grouped = [verb for verbs in GROUPS.values() for verb in verbs]
    assert sorted(grouped) == sorted(VERBS)
    shown = ada("--help").stdout
    assert [shown.index(f"{title}:") for title in GROUPS] == sorted(shown.index(f"{title}:") for title in GROUPS)
    assert not re.search(r"\b(VERB|verbs?|argument|SUPPRESS|namespace)\b", shown)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("snd",), "'snd' is not a command; did you mean send?"),
        (("zzz",), "'zzz' is not a command"),
        (("key", "creat", "x"), "'creat' is not one of create, list, revoke; did you mean create?"),
        (
            ("import", "users", "a.csv", "--columns", "-,name"),
            "--columns needs a value; one that begins with - is written --columns=-…",
        ),
        (("processes", "stp"), "'stp' is not one of start, quiet, resume, stop, test; did you mean stop?"),
        (("courier", "telegramm"), "did you mean telegram?"),
        (("send", "--too", "7", "--text", "x", "--to", "7"), "ada send does not know --too; did you mean --to?"),
        (("queue", "list", "--limt", "3"), "ada queue list does not know --limt; did you mean --limit?"),
        (("send", "--to", "7", "--text", "x", "--priority", "high"), "--priority: 'high' is not a whole number"),
        (("soak", "--minutes", "long"), "--minutes: 'long' is not a number"),
        (("migrate",), "these are missing: --to"),
        (("jobs", "start"), "these are missing: KIND.USER"),
    ],
)
def test_wrong_usage_is_explained_with_a_suggestion(args: tuple[str, ...], message: str) -> None:
    done = run_ada(args, environment(), ROOT)
    assert done.returncode == 2
    assert message in done.stderr
    assert "--help" in done.stderr
    assert not re.search(r"invalid (choice|int|float)|Traceback|argparse", done.stderr)


@pytest.mark.parametrize(
    "args",
    [
        ("--json", "doctor"),
        ("doctor", "--json"),
        ("--json", "queue", "stats"),
        ("queue", "--json", "stats"),
        ("queue", "stats", "--json"),
    ],
)
def test_json_is_accepted_before_and_after_the_command(args: tuple[str, ...]) -> None:
    verb = next(arg for arg in args if arg in VERBS)
    assert parse(verb, command_of(verb), list(args)).json


def test_without_json_no_command_prints_json() -> None:
    for verb in VERBS:
        assert not parse(verb, command_of(verb), [verb, *NEEDED.get(verb, ())]).json


NEEDED = {
    "send": ("--to", "7", "--text", "x"),
    "templates": ("list",),
    "track": ("k",),
    "show": ("k",),
    "answers": ("k",),
    "inbox": ("7", "--reason", "x"),
    "reply": ("k", "--text", "x", "--reason", "x"),
    "reschedule": ("k", "--at", "x"),
    "queue": ("stats",),
    "cluster": ("plan",),
    "key": ("list",),
    "webhook": ("list",),
    "sign-in": ("list", "7"),
    "user": ("list",),
    "contact": ("list", "7"),
    "group": ("list",),
    "supergroup": ("list",),
    "owner": ("list", "7"),
    "import": ("users", "people.csv"),
    "sync": ("1c", "people.csv"),
    "export": ("users",),
    "backup": ("FILE",),
    "restore": ("FILE",),
    "migrate": ("--to", "redis://h"),
    "courier": ("vk",),
    "bot": ("sms",),
    "bench": ("lag",),
    "scenarios": ("check", "bot"),
}


def test_rows_of_the_specification_are_listed_as_json() -> None:
    done = ada("test", "--rows", "--json", "tests/cli/test_audit.py", "tests/jobs/test_calls.py")
    listed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0
    assert {"D-01", "K-44", "C-92", "U-22"} <= {one["row"] for one in listed}
    files = {test.partition("::")[0] for one in listed for test in one["tests"]}
    assert files == {"tests/cli/test_audit.py", "tests/jobs/test_calls.py"}


def test_the_totals_of_a_test_run_are_printed_as_json() -> None:
    done = ada("test", "--json", "-n", "0", "tests/system/repository/test_lock_files.py")
    totals = json.loads(done.stdout)
    assert totals["passed"]
    assert totals["tests"] == 7
    assert totals["skipped"] == 0
    assert "passed" in done.stderr


def test_the_script_works_from_any_directory_through_a_symbolic_link(tmp_path: Path) -> None:
    link = tmp_path / "elsewhere"
    link.symlink_to(ROOT / "ada")
    (tmp_path / "cli").mkdir()  # must not be imported instead of ours
    (tmp_path / "cli" / "__init__.py").write_text("raise SystemExit('the wrong cli')")
    done = ada("--help", cwd=tmp_path, script=link)
    assert done.returncode == 0
    assert "check" in done.stdout


def test_verbs_that_only_call_a_running_ada_import_no_library_of_the_store_or_of_the_api() -> None:
    """They would take most of the time of such a verb: half a second of 0.7."""
    verbs = ("send", "show", "inbox", "templates", "user", "group", "export", "figures", "accounts", "webhook", "forms")
    modules = {f"cli.commands.{VERBS[verb][0]}" for verb in verbs}
    words = f"import sys, {', '.join(modules)}; print(*{{'aiohttp', 'cryptography', 'redis'}} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True).stdout == "\n"


def test_the_module_of_a_command_imports_no_library_of_a_provider() -> None:
    """They take a second of processor time each; the process of a channel imports its own."""
    modules = sorted({f"cli.commands.{module}" for module, _ in VERBS.values() if module != "parts.sandbox"})
    modules += ["cli.processes.supervisor", "delivery.app", "couriers.channel"]
    of_extras = {"apprise", "joserfc", "ldap3", "pywebpush", "scim2_models"}
    libraries = of_extras | {"aiogram", "telethon", "vkbottle"}
    words = f"import sys, {', '.join(modules)}; couriers.channel.channels(); print(*{libraries} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True).stdout == "\n"
