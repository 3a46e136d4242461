"""Places the boxes and lines of a graph: layers from top to bottom, few crossings. Pure.

The method of Sugiyama, Tagawa and Toda (1981): edges that close a loop are turned round; each node stands below all
that lead to it (longest path); long edges get a bend in each layer; the order within a layer is by barycentres.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Edge = tuple[str, str]
Point = tuple[int, int]

WIDTH, HEIGHT = 180, 52
"""Of a box."""

_BETWEEN, _BELOW, _BEND, _MARGIN = 28, 56, 24, 16
_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """`places`: the middle of each box. `lines`: the points of each edge that is no loop. `loops`: edges back."""

    places: Mapping[str, Point]
    lines: Mapping[Edge, Sequence[Point]]
    loops: frozenset[Edge]
    width: int
    height: int


def lay_out(nodes: Sequence[str], edges: Iterable[Edge]) -> Layout:
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


def _loops(nodes: Sequence[str], edges: Iterable[Edge]) -> frozenset[Edge]:
    """Return the edges that lead back to a node from which a depth-first search has come."""
    targets, found = _neighbours(edges), set[Edge]()
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


def _layers(nodes: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
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


def _chain(edge: Edge, layer: dict[str, int]) -> list[str]:
    """Return the ends of an edge with its bends between them, which get their layers."""
    source, target = edge
    bends = [f"{source}\0{target}\0{row}" for row in range(layer[source] + 1, layer[target])]
    layer.update((bend, layer[source] + 1 + n) for n, bend in enumerate(bends))
    return [source, *bends, target]


def _neighbours(edges: Iterable[Edge]) -> defaultdict[str, list[str]]:
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
