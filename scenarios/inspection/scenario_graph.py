"""A scenario as a graph that is drawn: its actions with their fields, what follows what, where each stands. Pure.

Its boxes are placed by the method of Sugiyama, Tagawa and Toda (1981): edges that close a loop are turned round; each
node stands below all that lead to it (longest path); long edges get a bend in each layer; the order within a layer is
by barycentres.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import yaml
from msgspec import Struct, to_builtins

from core.model.json_form import JsonObject
from scenarios.bot import Action, Bot, Place, Scenario
from scenarios.bot.button_data import scenario_of
from scenarios.engine.graph import Edge, Graph, graph_of, node_id, words
from scenarios.execution.secrets import Secrets
from scenarios.placeholders.values import as_list

Pair = tuple[str, str]
Point = tuple[int, int]

WIDTH, HEIGHT = 180, 52
"""Of a box."""

_BETWEEN, _BELOW, _BEND, _MARGIN = 28, 56, 24, 16
_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """`places`: the middle of each box. `lines`: the points of each edge that is no loop. `loops`: edges back."""

    places: Mapping[str, Point]
    lines: Mapping[Pair, Sequence[Point]]
    loops: frozenset[Pair]
    width: int
    height: int


def lay_out(nodes: Sequence[str], edges: Iterable[Pair]) -> Layout:
    """Return the layout. Nodes and edges stand in the author's order, which decides where nothing else does."""
    wanted = dict.fromkeys(edge for edge in edges if edge[0] in nodes and edge[1] in nodes)
    loops = _loops(nodes, wanted)
    forward = [edge for edge in wanted if edge not in loops]
    layer = _layers(nodes, forward)
    chains = {edge: _chain(edge, layer) for edge in forward}
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name in (*nodes, *(bend for chain in chains.values() for bend in chain[1:-1])):
        rows[layer[name]].append(name)
    pairs = [pair for chain in chains.values() for pair in pairwise(chain)]
    above, below = _neighbours((b, a) for a, b in pairs), _neighbours(pairs)
    _reduce_crossings(rows, above, below)
    sizes = dict.fromkeys(layer, _BEND) | dict.fromkeys(nodes, WIDTH)
    across = _across(rows, sizes, above, below)
    places = {name: (round(across[name]), _height_of(layer[name])) for name in layer}
    lines = {edge: [places[name] for name in chain] for edge, chain in chains.items()}
    right = max((across[name] + sizes[name] / 2 for name in layer), default=0.0)
    loops_room = _BETWEEN * 2 if loops else 0
    width, height = round(right) + _MARGIN + loops_room, _height_of(len(rows) - 1) + HEIGHT // 2 + _MARGIN
    return Layout({name: places[name] for name in nodes}, lines, loops, width, height)


def _height_of(row: int) -> int:
    return _MARGIN + HEIGHT // 2 + row * (HEIGHT + _BELOW)


def _loops(nodes: Sequence[str], edges: Iterable[Pair]) -> frozenset[Pair]:
    """Return the edges that lead back to a node from which a depth-first search has come."""
    targets, found = _neighbours(edges), set[Pair]()
    is_open: dict[str, bool] = {}
    for start in nodes:
        stack = [] if start in is_open else [(start, iter(targets[start]))]
        is_open.setdefault(start, True)
        while stack:
            node, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                is_open[node] = False
                stack.pop()
            elif is_open.get(target):
                found.add((node, target))
            elif target not in is_open:
                is_open[target] = True
                stack.append((target, iter(targets[target])))
        is_open[start] = False
    return frozenset(found)


def _layers(nodes: Sequence[str], edges: Sequence[Pair]) -> dict[str, int]:
    """Return the layer of each node: the length of the longest way to it."""
    targets, waits = _neighbours(edges), dict.fromkeys(nodes, 0)
    for _, target in edges:
        waits[target] += 1
    layer, ready = dict.fromkeys(nodes, 0), [node for node in nodes if not waits[node]]
    for node in ready:  # it grows while it is read
        for target in targets[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    return layer


def _chain(edge: Pair, layer: dict[str, int]) -> list[str]:
    """Return the ends of an edge with its bends between them, which get their layers."""
    source, target = edge
    bends = [f"{source}\0{target}\0{row}" for row in range(layer[source] + 1, layer[target])]
    layer.update((bend, layer[source] + 1 + n) for n, bend in enumerate(bends))
    return [source, *bends, target]


def _neighbours(edges: Iterable[Pair]) -> defaultdict[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    for source, target in edges:
        found[source].append(target)
    return found


def _reduce_crossings(
    rows: list[list[str]], above: Mapping[str, Sequence[str]], below: Mapping[str, Sequence[str]]
) -> None:
    """Orders each row by the mean place of its neighbours, downwards and upwards in turn."""
    for sweep in range(_SWEEPS):
        neighbours = below if sweep % 2 else above
        for row in rows[::-1] if sweep % 2 else rows:
            place = {name: float(n) for line in rows for n, name in enumerate(line)}
            row.sort(key=lambda name: _mean(neighbours.get(name, ()), place, place[name]))


def _mean(names: Sequence[str], place: Mapping[str, float], otherwise: float) -> float:
    return sum(place[name] for name in names) / len(names) if names else otherwise


def _across(
    rows: Sequence[Sequence[str]],
    sizes: Mapping[str, int],
    above: Mapping[str, Sequence[str]],
    below: Mapping[str, Sequence[str]],
) -> dict[str, float]:
    """Return where each box stands in its row: near the mean of its neighbours, without touching the next one."""
    across: dict[str, float] = {}
    for row in rows:
        across |= _side_by_side(row, sizes, dict.fromkeys(row, 0.0))
    for sweep in range(_SWEEPS):
        neighbours = below if sweep % 2 else above
        for row in rows[::-1] if sweep % 2 else rows:
            wanted = {name: _mean(neighbours.get(name, ()), across, across[name]) for name in row}
            across |= _side_by_side(row, sizes, wanted)
    left = min((across[name] - sizes[name] / 2 for name in across), default=0.0)
    return {name: middle - left + _MARGIN for name, middle in across.items()}


def _side_by_side(row: Sequence[str], sizes: Mapping[str, int], wanted: Mapping[str, float]) -> dict[str, float]:
    """Return places near the wanted ones in which nothing touches: pushed to the right, then the row moved back."""
    found: dict[str, float] = {}
    end = float("-inf")
    for name in row:
        found[name] = max(wanted[name], end + sizes[name] / 2)
        end = found[name] + sizes[name] / 2 + _BETWEEN
    moved = sum(found[name] - wanted[name] for name in row) / len(row) if row else 0.0
    return {name: place - moved for name, place in found.items()}


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
