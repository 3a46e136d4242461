"""Every script on a task, as a move from any world: A is the task in question, C stands before it, B and D behind.

A move answers None where it makes no sense (nobody has a token to speak with). What is said with a token of A is said
with the last one it was given and with the first one, whoever holds it now.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.queue.queue import NewTask
from core.queue.task import Settlement, Task
from tests.model_checking.many_shards import HOUR_MS, Call, Pass, World

TUBE = "t"
CLIENT = "asker"
NEXT_HOUR = HOUR_MS // 2
"""A time that the next hour brings about."""
HOUR_AFTER = HOUR_MS + HOUR_MS // 2
FLOOR_MS = 5000
CALLS = {"C": 1, "A": 2, "B": 3, "D": 4}


Step = Call | Pass | None
Move = Callable[[World], Step]


@dataclass(frozen=True, slots=True)
class Ways:
    """How the tube and its tasks are. `lane` "": none. `expires`: A and B do, unless taken in time. `tenants`: B is
    another's.
    """

    lane: str = "x"
    parks: bool = False
    keeps: bool = False
    expires: bool = False
    tenants: bool = False

    def options(self) -> dict[str, str]:
        """Of the tube, as the server keeps them."""
        found = {"retry": "park" if self.parks else "", "keep_ms": str(HOUR_AFTER) if self.keeps else ""}
        return {f"{TUBE}:{name}": value for name, value in found.items() if value}

    def put(self, name: str, due: int = 0) -> Move:
        """`due`: ms from now on."""

        def move(world: World) -> Step:
            row = list(self._draft(name).row(name))
            row[4] = world.now + due if due else ""
            row[5] = world.now + HOUR_AFTER if self.expires and name in "AB" else ""
            return Call("put", ("putter", CALLS[name], 1, TUBE, *row))

        return move

    def _draft(self, name: str) -> NewTask:
        tenant = "other" if self.tenants and name == "B" else "one"
        attempts, reply = (2, CLIENT) if name == "A" else (0, "")
        return NewTask(name, tenant, self.lane, kind=f"k.{name}", attempts=attempts, user="u", tags=["g"], reply=reply)

    def moves(self) -> dict[str, Move]:
        """By name."""
        return {
            "put A again": self.put("A"),
            "put D": self.put("D"),
            "claim": claim("one", 1),
            "claim by another": claim("two", 2),
            "tick": _always(Call("claim", ("nobody's", "clock", "", 0, 0, 0, FLOOR_MS))),
            "an hour passes": lambda world: Pass(HOUR_MS),
            "resign": _always(Call("release_timer", ("one",))),
            **with_token("A", -1, VERBS),
            **{f"{name}, old": move for name, move in with_token("A", 0, OLD).items()},
            **with_token("B", -1, {name: VERBS[name] for name in ("done", "retry later", "release later")}),
            **{f"{verb} {name}": on_name(verb, name) for verb in ("cancel_tasks", "bury", "kick") for name in "AB"},
            "purge A": on_name("purge", "A"),
        }


def _always(call: Call) -> Move:
    return lambda world: call


def claim(owner: str, limit: int) -> Move:
    return _always(Call("claim", (TUBE, owner, "", limit, limit, NEXT_HOUR, FLOOR_MS)))


def on_name(verb: str, name: str) -> Move:
    return lambda world: Call(verb, (name,)) if f"queue:{{0}}:task:{name}" in world.keys else None


def held(name: str, token: str) -> Task:
    return Task.of(0, 0, [name, token, 1, "0", *[""] * 9])


Said = Callable[[World, str, str], Call]


def _extend(world: World, name: str, token: str) -> Call:
    return Call("extend", (name, token, HOUR_AFTER, "half way", "[]"))


def _release(after: int) -> Said:
    return lambda world, name, token: Call("release", (name, token, world.now + after if after else 0, ""))


def _settle(result: str, after: int = 0, body: str = "") -> Said:
    def said(world: World, name: str, token: str) -> Call:
        due = world.now + after if after else 0
        end = Settlement(result, due=due, body=body, answer=f"answer of {name}")
        return Call("settle", end.row(held(name, token)))

    return said


VERBS: Mapping[str, Said] = {
    "extend": _extend,
    "done": _settle("done"),
    "failed": _settle("failed"),
    "retry": _settle("retry", body="another"),
    "retry later": _settle("retry", NEXT_HOUR),
    "bury at the end": _settle("bury"),
    "release": _release(0),
    "release later": _release(NEXT_HOUR),
}
OLD = {name: VERBS[name] for name in ("extend", "done", "retry later", "release")}


def with_token(name: str, which: int, verbs: Mapping[str, Said]) -> dict[str, Move]:
    """`which` of the tokens that were given for this task: 0 the first, -1 the last."""

    def move(said: Said) -> Move:
        def made(world: World) -> Step:
            given = world.tokens.get(name, ())
            if not given or (which == 0 and len(given) == 1):
                return None
            return said(world, name, given[which])

        return made

    return {f"{verb} {name}": move(said) for verb, said in verbs.items()}


# Where every proof begins: a state of A, and the moves that bring it about.
STARTS: Mapping[str, tuple[str, ...]] = {
    "not there": (),
    "ready": ("put A", "put B"),
    "deferred": ("put A for later", "put B"),
    "overdue": ("put A for later", "put B", "an hour passes"),
    "locked behind a ready one": ("put C", "put A", "put B"),
    "locked behind a taken one": ("put C", "put A", "put B", "claim"),
    "taken": ("put A", "put B", "claim"),
    "taken and cancelled": ("put A", "put B", "claim", "cancel_tasks A"),
    "taken, its lease over": ("put A", "put B", "claim", "an hour passes"),
    "taken by a second worker": ("put A", "put B", "claim", "an hour passes", "tick", "claim by another"),
    "taken twice by one": ("put A", "put B", "claim", "release A", "claim"),
    "backing off": ("put A", "put B", "claim", "retry later A"),
    "backed off": ("put A", "put B", "claim", "retry later A", "an hour passes"),
    "released for later": ("put A", "put B", "claim", "release later A"),
    "buried": ("put A", "put B", "bury A"),
    "buried at its end": ("put A", "put B", "claim", "bury at the end A"),
    "done": ("put A", "put B", "claim", "done A"),
    "expired": ("put A", "put B", "an hour passes", "an hour passes"),
    "behind a sleeping worker": ("claim", "put A for later"),
}


def start_moves(ways: Ways) -> dict[str, Move]:
    """What the starts need beside the moves."""
    return {
        **ways.moves(),
        **{f"put {name}": ways.put(name) for name in "CAB"},
        "put A for later": ways.put("A", NEXT_HOUR),
    }
