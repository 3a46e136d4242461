"""A scenario as a graph that is drawn: its actions with their fields, what follows what, where each stands. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from scenarios.bot import Action, Bot, Place, Scenario
from scenarios.engine.graph import Edge, Graph, graph_of, words
from scenarios.execution.secrets import Secrets
from scenarios.inspection.layout import Layout, Point, lay_out

MOST_NODES = 300
"""Of one graph; what is behind them is counted."""

_TITLES = ("text", "value", "name", "operation", "message", "prompt", "user_state", "key")
_LONGEST_TITLE = 80


class NodeView(Struct, frozen=True):
    """One action. `title`: the beginning of what it says. `chain`, `chain_drop`: the outcomes that they name. `fields`:
    as written, without secrets. `x`, `y`: the middle of its box, 180 × 52 large.
    """

    id: str
    n: int
    scenario: str
    type: str
    title: str
    place: str
    chain: str
    chain_drop: str
    fields: Mapping[str, Any]
    x: int
    y: int


class EdgeView(Struct, frozen=True):
    """A link from one action to the next. `label`: the outcomes with which the second action runs, or `splices in`.
    `points`: its line; none of an edge that leads back.
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
    layout = lay_out(ids, [(edge.source, edge.target) for edge in graph.edges])
    return ScenarioGraph(
        name=scenario.name,
        version=version,
        place=place_text(scenario.place),
        nodes=[_node(bot, graph, number, layout, secrets) for number in range(len(ids))],
        edges=_edges(graph.edges, layout),
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
    fields, title = secrets.hidden(dict(action.fields)), secrets.in_text(_title(action))
    place = place_text(action.place)
    x, y = layout.places[node.id]
    return NodeView(node.id, n, node.scenario, node.type, title, place, chain, words(action.chain_drop), fields, x, y)


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
