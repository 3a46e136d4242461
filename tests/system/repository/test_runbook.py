"""docs/runbook.md has every line of doctor, every code and every alarm, and no other."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from cli.command import FAILURE, OPERATOR_NEEDED, SUCCESS, WRONG_USAGE
from cli.main import command_of
from core.monitoring.overview import MatterKind
from core.processes import ProcessState
from core.redis.server_checks import setting_problems
from delivery.http.metrics import Metrics
from delivery.http.responses.problem_types import CODES
from delivery.routes import ROUTES
from tests.support.paths import ROOT
from tests.system.guides.blocks import blocks_of

PAGE = ROOT / "docs" / "runbook.md"
TEXT = " ".join(PAGE.read_text().split())
START = ROOT / "cli" / "commands" / "start"
FINDINGS = [START / f"{name}.py" for name in ("doctor", "people_findings", "store_findings")]
REFUSALS = [ROOT / "core" / "redis" / f"{name}.py" for name in ("refusals", "primary", "store")]
NAMED_BY_A_VARIABLE = {
    "channel": ["a channel"],
    "what": ["model", "to_speech", "from_speech"],
    "section": ["replication", "memory", "persistence"],
    "name": ["operators", "office"],
    "kind": ["a kind of matter"],
}
"""What doctor calls its lines where the name is not a literal."""
CLUSTER = ("check_cluster", "_seen")
"""The functions that put together its line about a cluster."""

CODE = re.compile(r"\b(?:STORE|SENTINEL|CLUSTER|REDIS_URL|LAYOUT|SHARDS|DATA)_[A-Z]+(?:_[A-Z]+)*\b")
OWN_NAMES = frozenset({"SENTINEL_FORM", "CLUSTER_FORM"})

Call = tuple[str, list[ast.expr], ast.AST]


@cache
def calls(file: Path, names: tuple[str, ...]) -> list[Call]:
    """Return the calls of these functions in a file: name, arguments, the function around."""
    tree = ast.parse(file.read_text())
    around = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = ((call, function) for function in around for call in ast.walk(function) if isinstance(call, ast.Call))
    return [(name_of(call), call.args, function) for call, function in found if name_of(call) in names]


def name_of(call: ast.Call) -> str:
    """Return the name of the function that is called, without its module."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def literal(node: ast.expr, function: ast.AST) -> str:
    """Return a text of the code with … in place of what varies; "" if it is made elsewhere."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.Name):
        for one in ast.walk(function):
            if isinstance(one, ast.Assign) and any(isinstance(to, ast.Name) and to.id == node.id for to in one.targets):
                return literal(one.value, function)
    return ""


def findings() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each line of doctor that is not always good."""
    for file in FINDINGS:
        for _, (what, is_good, detail, *_), function in calls(file, ("Finding",)):
            if literal(is_good, function) != "True":
                names = NAMED_BY_A_VARIABLE[what.id] if isinstance(what, ast.Name) else [literal(what, function)]
                yield from ((name, literal(detail, function)) for name in names)


def faults_of_a_cluster() -> Iterator[str]:
    """Yield the texts that doctor puts together into its line about a cluster."""
    tree = ast.parse(FINDINGS[-1].read_text())
    about = [one for one in ast.walk(tree) if isinstance(one, ast.AsyncFunctionDef) and one.name in CLUSTER]
    assert len(about) == len(CLUSTER)
    texts = [one for function in about for one in ast.walk(function) if isinstance(one, ast.JoinedStr)]
    yield from (text for one in texts if (text := literal(one, tree)))


def pieces(text: str) -> list[str]:
    """Return the fixed parts of a text that are long enough to be searched for."""
    return [part for part in (piece.strip(" .:,;()") for piece in text.split("…")) if len(part) > 6]


def rows(heading: str) -> list[str]:
    """Return the first cells of the rows under a heading."""
    part = re.split(r"\n##+ ", PAGE.read_text().partition(f"# {heading}\n")[2])[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [re.split(r"(?<!\\) \| ", line[2:])[0] for line in lines]


def test_the_runbook_has_every_line_of_doctor() -> None:
    lines, found = rows("Lines of doctor"), list(findings())
    assert len(found) > 25
    for name, text in [*found, *(("cluster", fault) for fault in faults_of_a_cluster())]:
        named = [line for line in lines if (name if " " in name else f"`{name}`") in line]
        assert any(all(piece in line for piece in pieces(text)) for line in named), (name, text)


def test_the_runbook_has_every_setting_of_the_server_that_is_checked() -> None:
    wrong = {"maxmemory-policy": "allkeys-lru", "appendonly": "no", "hash-max-listpack-value": "1"}
    of_cluster = {"cluster-require-full-coverage": "yes", "cluster-node-timeout": "15000"}
    problems = setting_problems({**wrong, **of_cluster, "cluster-enabled": "yes"})
    assert len(problems) == len(wrong) + len(of_cluster)
    assert [one for one in problems if f"`{one.setting} is …, not {one.wanted}`" not in TEXT] == []


def test_the_runbook_has_every_reason_why_a_server_cannot_be_used() -> None:
    texts = [
        literal(arguments[0], function)
        for file in REFUSALS
        for _, arguments, function in calls(file, ("SetupError", "StoreUnavailable"))
    ]
    known = [text for text in texts if text and not CODE.match(text)]
    assert len(known) > 10
    assert [text for text in known if max(pieces(text.partition(". ")[0]), key=len) not in TEXT] == []


def codes_in_the_source() -> set[str]:
    """Return the codes of the store and of the setup, wherever core has them."""
    found: set[str] = set()
    for file in (ROOT / "core").rglob("*.py"):
        tree = ast.parse(file.read_text())
        texts = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        found.update(code for text in texts if "\n" not in text for code in CODE.findall(text))
    return found - OWN_NAMES


def test_the_runbook_has_every_code_of_the_store_and_of_the_server_side() -> None:
    ours = codes_in_the_source() | {code for code, kind in CODES.items() if kind.status >= 500}
    assert {code for row in rows("Codes") for code in re.findall(r"`([A-Z_]+)`", row)} == ours


def test_the_runbook_has_every_answer_of_readyz() -> None:
    file = ROOT / "delivery" / "api" / "health.py"
    answers = {literal(words[0], around) for _, words, around in calls(file, ("problem", "ReadinessResponse"))}
    table = PAGE.read_text().partition("| `/readyz` |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| \d+, `(\w+)`", table, re.MULTILINE)) == answers


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [
        ("What needs attention", [str(one) for one in MatterKind]),
        ("Processes", [str(one) for one in ProcessState if one != ProcessState.RUNNING]),
    ],
)
def test_the_runbook_has_every_kind_of_matter_and_every_state_of_a_process(heading: str, kinds: list[str]) -> None:
    found = [re.match(r"`(\w+)`", row) for row in rows(heading)]
    assert sorted(one[1] for one in found if one) == sorted(kinds)


def test_the_runbook_has_every_exit_code() -> None:
    codes = [int(code) for code in re.findall(r"^\| (\d) \|", PAGE.read_text(), re.MULTILINE)]
    assert codes == [SUCCESS, FAILURE, WRONG_USAGE, OPERATOR_NEEDED]


def test_each_alarm_has_its_row_and_reads_metrics_that_exist() -> None:
    [block] = [one for one in blocks_of(PAGE) if one.about == "ada-alerts.yml"]
    rules = yaml.safe_load(block.text)["groups"][0]["rules"]
    metrics = Metrics()
    metrics.count("POST", "/v1/deliveries", 503, 0.1)
    shown = metrics.render().decode()
    assert {route.path for route in ROUTES} >= {"/v1/deliveries"}
    for rule in rules:
        assert f"| `{rule['alert']}` |" in PAGE.read_text()
        assert all(f"\n{name}{{" in shown for name in re.findall(r"ada_\w+", rule["expr"]))
    assert re.search(r'ada_http_requests_total\{[^}]*status="503"', shown)
    assert re.search(r'_bucket\{[^}]*route="/v1/deliveries"', shown)


def test_every_command_of_the_runbook_exists() -> None:
    verbs = set(re.findall(r"\./ada ([a-z-]+)", TEXT))
    assert len(verbs) > 5
    for verb in verbs:
        command_of(verb)
