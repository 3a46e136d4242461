"""A scenario as a graph that is drawn: its actions with their fields, what follows what, where each stands. Pure."""

from collections.abc import Iterator, Mapping, Sequence

import yaml
from msgspec import Struct, to_builtins

from core.model.json_form import JsonObject
from scenarios.bot import Action, Bot, Place, Scenario
from scenarios.bot.button_data import scenario_of
from scenarios.engine.graph import Edge, Graph, graph_of, node_id, words
from scenarios.execution.secrets import Secrets
from scenarios.inspection.layout import Layout, Point, lay_out
from scenarios.placeholders.values import as_list

MOST_NODES = 300
"""Of one graph; what is behind them is counted."""

_TITLES = ("text", "value", "name", "operation", "message", "prompt", "user_state", "key")
_LONGEST_TITLE = 80


class NodeView(Struct, frozen=True):
    """One action, or with `n` 0 another scenario that a button starts. `title`: the beginning of what it says. `chain`,
    `chain_drop`: the outcomes that they name. `fields`: as written, without secrets; `yaml`: the same as a text.
    `x`, `y`: the middle of its box, 180 × 52 large.
    """

    id: str
    n: int
    scenario: str
    type: str
    title: str
    place: str
    chain: str
    chain_drop: str
    fields: JsonObject
    yaml: str
    x: int
    y: int


class EdgeView(Struct, frozen=True):
    """A link from one action to the next. `label`: the outcomes with which the second action runs, `splices in`, or the
    texts of the buttons that start the scenario to which it leads. `points`: its line; none of an edge that leads back.
    """

    source: str
    target: str
    label: str
    points: Sequence[Point]


class ScenarioGraph(Struct, frozen=True):
    """A scenario with all that it splices in, and where each action is drawn. `unknown`: names that are known only when
    it runs. `left_out`: actions behind the first 300.
    """

    name: str
    version: str
    place: str
    nodes: Sequence[NodeView]
    edges: Sequence[EdgeView]
    unknown: Sequence[str]
    left_out: int
    width: int
    height: int


def graph_view(version: str, bot: Bot, scenario: Scenario, secrets: Secrets) -> ScenarioGraph:
    """Return the graph of a scenario. `secrets`: what must not be shown."""
    graph = graph_of(bot, scenario)
    ids = [node.id for node in graph.nodes[:MOST_NODES]]
    jumps = _jumps(bot, graph, ids)
    started = list(dict.fromkeys(edge.target for edge in jumps if edge.target not in ids))
    edges = [*graph.edges, *jumps]
    layout = lay_out([*ids, *started], [(edge.source, edge.target) for edge in edges])
    return ScenarioGraph(
        name=scenario.name,
        version=version,
        place=place_text(scenario.place),
        nodes=[
            *(_node(bot, graph, number, layout, secrets) for number in range(len(ids))),
            *(_started(bot, one, layout) for one in started),
        ],
        edges=_edges(edges, layout),
        unknown=graph.unknown,
        left_out=len(graph.nodes) - len(ids),
        width=layout.width,
        height=layout.height,
    )


def _node(bot: Bot, graph: Graph, number: int, layout: Layout, secrets: Secrets) -> NodeView:
    node = graph.nodes[number]
    n = int(node.id.rpartition(":")[2])
    action = bot.scenarios[node.scenario].actions[n - 1]
    chain = "" if action.chain is None else words(action.chain)
    fields, title = secrets.hidden_fields(action.fields), secrets.in_text(_title(action))
    place = place_text(action.place)
    x, y = layout.places[node.id]
    written = yaml.safe_dump(to_builtins(fields), allow_unicode=True, sort_keys=False, width=100) if fields else ""
    return NodeView(
        node.id, n, node.scenario, node.type, title, place, chain, words(action.chain_drop), fields, written, x, y
    )


def _started(bot: Bot, node: str, layout: Layout) -> NodeView:
    """Return the box of a scenario that is not drawn itself."""
    scenario = bot.scenarios[node.rpartition(":")[0]]
    x, y = layout.places[node]
    return NodeView(node, 0, scenario.name, "scenario", scenario.name, place_text(scenario.place), "", "", {}, "", x, y)


def _jumps(bot: Bot, graph: Graph, ids: Sequence[str]) -> list[Edge]:
    """Return the links of buttons to the scenarios that they start; a scenario that is not drawn has the number 0."""
    known = {(edge.source, edge.target) for edge in graph.edges}
    labels: dict[tuple[str, str], list[str]] = {}
    for node in graph.nodes[: len(ids)]:
        scenario, n = bot.scenarios[node.scenario], int(node.id.rpartition(":")[2])
        for label, goal in _buttons(scenario.actions[n - 1]):
            if target := bot.find(goal, scenario) or bot.find(scenario_of(goal), scenario):
                first = node_id(target.name, 1)
                labels.setdefault((node.id, first if first in ids else node_id(target.name, 0)), []).append(label)
    return [Edge(*ends, ", ".join(some)[:_LONGEST_TITLE]) for ends, some in labels.items() if ends not in known]


def _buttons(action: Action) -> Iterator[tuple[str, str]]:
    """Emit text and goal of the buttons under a message that name one."""
    for row in as_list(action.fields.get("inline")):
        for button in as_list(row):
            if isinstance(button, Mapping):
                yield from ((str(label), str(goal)) for label, goal in button.items())


def _edges(edges: Sequence[Edge], layout: Layout) -> list[EdgeView]:
    known = {(edge.source, edge.target): edge for edge in edges}
    drawn = [*layout.lines.items(), *((edge, ()) for edge in sorted(layout.loops))]
    return [EdgeView(*ends, known[ends].label, points) for ends, points in drawn]


def _title(action: Action) -> str:
    said = next((action.fields[name] for name in _TITLES if action.fields.get(name)), "")
    text = " ".join(str(one) for one in said) if isinstance(said, list | tuple) else str(said)
    return " ".join(text.split())[:_LONGEST_TITLE]


def place_text(place: Place) -> str:
    """Return where something is written, as `file:line`."""
    return f"{place.file}:{place.line}"
