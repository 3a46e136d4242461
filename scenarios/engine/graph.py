"""A scenario as a graph: its actions, what each waits for, the scenarios that it splices in, and in words what
released or dropped a step of a run (C-39). Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from scenarios.bot import ANY, Action, Bot, Scenario
from scenarios.engine import Cause, Path, Run, Step


@dataclass(frozen=True, slots=True)
class Node:
    """One action. `id`: scenario and number from 1, as in `menu.start:2`."""

    id: str
    scenario: str
    type: str


@dataclass(frozen=True, slots=True)
class Edge:
    """`label`: the outcomes with which the second action runs, or `splices in`."""

    source: str
    target: str
    label: str


@dataclass(slots=True)
class Graph:
    """The scenario and all that it splices in, each once; so a loop is an edge back. `unknown`: names without one."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def graph_of(bot: Bot, scenario: Scenario) -> Graph:
    """Return the graph of this scenario. Names with placeholders are known only when it runs; they are in `unknown`."""
    graph, waiting, seen = Graph(), [scenario], {scenario.name}
    while waiting:
        current = waiting.pop(0)
        for number, action in enumerate(current.actions, 1):
            for target in _add(graph, bot, current, number, action):
                if target.name not in seen:
                    seen.add(target.name)
                    waiting.append(target)
    return graph


SPLICING = ("scenario", "branch", "for_each")
"""The actions in whose place other scenarios run."""


def spliced_names(action: Action) -> list[str]:
    """Return the names that a `scenario` or `for_each` splices in, or those of which a `branch` splices in one."""
    if action.type == "for_each":
        return [str(action.fields["scenario"])] if action.fields.get("scenario") else []
    if action.type == "branch":
        cases = action.fields.get("cases")
        targets = [one.get("scenario") for one in cases if isinstance(one, Mapping)] if isinstance(cases, list) else []
        return [str(name) for name in (*targets, action.fields.get("otherwise")) if name]
    named = action.fields.get("value") or action.fields.get("name")
    if action.type != "scenario" or not named:
        return []
    return [str(name) for name in named] if isinstance(named, list | tuple) else [str(named)]


def is_parallel(action: Action) -> bool:
    """Return whether a `scenario` action names a list (C-34), or there is one run for each item."""
    if action.type == "for_each":
        return True
    return isinstance(action.fields.get("value") or action.fields.get("name"), list | tuple)


def _add(graph: Graph, bot: Bot, scenario: Scenario, number: int, action: Action) -> Iterator[Scenario]:
    """Add one action with its edges; yield the scenarios that it splices in."""
    own = node_id(scenario.name, number)
    graph.nodes.append(Node(own, scenario.name, action.type))
    if number > 1 and action.chain is not None:
        graph.edges.append(Edge(before(bot, scenario, number), own, words(action.chain)))
    for name in action.handlers:
        if handler := bot.scenarios.get(name):
            graph.edges.append(Edge(own, node_id(name, 1), name.rpartition(".")[2]))
            yield handler
    for name in spliced_names(action):
        target = bot.find(name, scenario)
        if target is None:
            graph.unknown.append(name)
        else:
            graph.edges.append(Edge(own, node_id(target.name, 1), "splices in"))
            yield target


def before(bot: Bot, scenario: Scenario, number: int) -> str:
    """Return the action before this one, or that it names: of a single scenario that is spliced in there, the last one
    (C-33).
    """
    steps = [action.step for action in scenario.actions[: number - 1]]
    named = scenario.actions[number - 1].after
    number = steps.index(named) + 2 if named and named in steps else number
    previous = scenario.actions[number - 2]
    names = spliced_names(previous)
    target = bot.find(names[0], scenario) if len(names) == 1 and not is_parallel(previous) else None
    return (
        node_id(target.name, len(target.actions)) if target and target.actions else node_id(scenario.name, number - 1)
    )


def node_id(scenario: str, number: int) -> str:
    """Return the id of an action; `number` counts from 1."""
    return f"{scenario}:{number}"


def words(outcomes: frozenset[str]) -> str:
    """Return the outcomes as an author writes them: `failed` names `unknown`, too."""
    if outcomes == ANY:
        return "any"
    return ", ".join(sorted(outcomes - {"unknown"} if "failed" in outcomes else outcomes))


def as_text(bot: Bot, scenario: Scenario) -> str:
    """Return one line per action, below the name of its scenario; what is spliced in follows."""
    scenarios = dict.fromkeys(node.scenario for node in graph_of(bot, scenario).nodes)
    parts = ["\n".join(_lines(bot, bot.scenarios[name])) for name in scenarios or [scenario.name]]
    return "\n\n".join(parts)


def _lines(bot: Bot, scenario: Scenario) -> Iterator[str]:
    yield scenario.name
    if not scenario.actions:
        yield "  (no actions)"
    for number, action in enumerate(scenario.actions, 1):
        notes = [*_notes(bot, scenario, number), *(_splice_note(bot, scenario, name) for name in spliced_names(action))]
        yield f"  {number}. {action.type}" + (f": {'; '.join(notes)}" if notes else "")


def _notes(bot: Bot, scenario: Scenario, number: int) -> Iterator[str]:
    action = scenario.actions[number - 1]
    if action.chain is not None and number > 1:
        previous = before(bot, scenario, number).removeprefix(f"{scenario.name}:")
        yield f"after {previous} ended as {words(action.chain)}"
    elif number > 1:
        yield "at once"
    if action.chain_drop:
        yield f"drops what is chained after it if it ends as {words(action.chain_drop)}"
    if action.on_failure:
        yield f"if it fails, {action.on_failure}"
    if action.otherwise:
        yield f"if it ends as drop, {action.otherwise}"


def _splice_note(bot: Bot, scenario: Scenario, name: str) -> str:
    target = bot.find(name, scenario)
    return f"splices in {target.name}" if target else f"splices in {name!r}, which no scenario is called"


def as_dot(graph: Graph) -> str:
    """Return the graph in the language DOT, for Graphviz: a box per scenario."""
    scenarios: Mapping[str, list[Node]] = {node.scenario: [] for node in graph.nodes}
    for node in graph.nodes:
        scenarios[node.scenario].append(node)
    lines = ["digraph scenario {", "  node [shape=box];"]
    for number, (name, nodes) in enumerate(scenarios.items()):
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(name)};"]
        lines += [f"    {_quoted(node.id)} [label={_quoted(node.type)}];" for node in nodes] + ["  }"]
    lines += [f"  {_quoted(one.source)} -> {_quoted(one.target)} [label={_quoted(one.label)}];" for one in graph.edges]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def explain(step: Step, numbers: Mapping[Path, int], run: Run) -> str:
    """Return what released or dropped a step, in words, and the error if it failed."""
    ending = step.ending
    error = ending.error if ending is not None else ""
    return _cause_text(step, numbers, run) + (f"; {error}" if error else "")


def _cause_text(step: Step, numbers: Mapping[Path, int], run: Run) -> str:
    if step.cause is Cause.UNCHAINED:
        return "it has no chain, so it runs at once"
    if step.cause is Cause.FIRST or step.caused_by is None:
        return "it has a chain, but no action is before it"
    before = f"action {numbers[step.caused_by]} ended as {run.steps[step.caused_by].state}"
    if step.cause is Cause.CUT:
        return f"{before}, which its chain_drop names"
    return f"{before}; the chain is {words(step.action.chain or frozenset())}"
