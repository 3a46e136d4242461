"""Every script on a task as an operation on any state. A is the task under test, C is before it, B and D behind.

An operation returns None where it is impossible (it needs a token and none was issued). Calls with a token of A are
tried with its last token and with its first one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.queue import NewTask, Settlement, SettleResult, Task
from tests.system.model_checking.many_shards import HOUR_MS, Call, PassTime, ShardState

TUBE = "t"
CLIENT = "asker"
NEXT_HOUR = HOUR_MS // 2
"""In the middle of the next hour, so a moment that `an hour passes` brings about."""
HOUR_AFTER = HOUR_MS + HOUR_MS // 2
FLOOR_MS = 5000
CALLS = {"C": 1, "A": 2, "B": 3, "D": 4}


Step = Call | PassTime | None
Operation = Callable[[ShardState], Step]


@dataclass(frozen=True, slots=True)
class TubeVariant:
    """Options of the tube and its tasks.

    `lane` "": no lane. `expires`: A and B expire unless they are taken in time. `tenants`: B belongs to another tenant.
    """

    lane: str = "x"
    parks: bool = False
    keeps: bool = False
    expires: bool = False
    tenants: bool = False

    def options(self) -> dict[str, str]:
        """The options of the tube, as the server keeps them."""
        found = {"retry": "park" if self.parks else "", "keep_ms": str(HOUR_AFTER) if self.keeps else ""}
        return {f"{TUBE}:{name}": value for name, value in found.items() if value}

    def put(self, name: str, due: int = 0) -> Operation:
        """`due`: in ms from now; 0 for at once."""

        def operation(state: ShardState) -> Step:
            row = list(self._draft(name).row(name))
            row[4] = state.now + due if due else ""
            row[5] = state.now + HOUR_AFTER if self.expires and name in "AB" else ""
            return Call("put", ("putter", CALLS[name], 1, TUBE, *row))

        return operation

    def _draft(self, name: str) -> NewTask:
        tenant = "other" if self.tenants and name == "B" else "one"
        attempts, reply = (2, CLIENT) if name == "A" else (0, "")
        return NewTask(name, tenant, self.lane, kind=f"k.{name}", attempts=attempts, user="u", tags=["g"], reply=reply)

    def operations(self) -> dict[str, Operation]:
        """Name → operation."""
        return {
            "put A again": self.put("A"),
            "put D": self.put("D"),
            "claim": claim("one", 1),
            "claim by another": claim("two", 2),
            "tick": _always(Call("claim", ("empty", "clock", "", 0, 0, 0, FLOOR_MS))),
            "an hour passes": lambda state: PassTime(HOUR_MS),
            "release the timer": _always(Call("release_timer", ("one",))),
            **with_token("A", -1, VERBS),
            **{f"{name}, first token": operation for name, operation in with_token("A", 0, FIRST_TOKEN_VERBS).items()},
            **with_token("B", -1, {name: VERBS[name] for name in ("done", "retry later", "release later")}),
            **{f"{verb} {name}": on_name(verb, name) for verb in ("cancel_tasks", "bury", "kick") for name in "AB"},
            "purge A": on_name("purge", "A"),
        }


def _always(call: Call) -> Operation:
    return lambda state: call


def claim(owner: str, limit: int) -> Operation:
    return _always(Call("claim", (TUBE, owner, "", limit, limit, NEXT_HOUR, FLOOR_MS)))


def on_name(verb: str, name: str) -> Operation:
    return lambda state: Call(verb, (name,)) if f"queue:{{0}}:task:{name}" in state.keys else None


def task_with_token(name: str, token: str) -> Task:
    return Task.of(0, 0, [name, token, 1, "0", *[""] * 9])


TokenCall = Callable[[ShardState, str, str], Call]


def _extend(state: ShardState, name: str, token: str) -> Call:
    return Call("extend", (name, token, HOUR_AFTER, "half way", "[]"))


def _release(after: int) -> TokenCall:
    return lambda state, name, token: Call("release", (name, token, state.now + after if after else 0, ""))


def _settle(result: SettleResult, after: int = 0, body: str = "") -> TokenCall:
    def call(state: ShardState, name: str, token: str) -> Call:
        due = state.now + after if after else 0
        end = Settlement(result, due=due, body=body, answer=f"answer of {name}")
        return Call("settle", end.row(task_with_token(name, token)))

    return call


VERBS: Mapping[str, TokenCall] = {
    "extend": _extend,
    "done": _settle(SettleResult.DONE),
    "failed": _settle(SettleResult.FAILED),
    "retry": _settle(SettleResult.RETRY, body="another"),
    "retry later": _settle(SettleResult.RETRY, NEXT_HOUR),
    "bury at the end": _settle(SettleResult.BURY),
    "release": _release(0),
    "release later": _release(NEXT_HOUR),
}
FIRST_TOKEN_VERBS = {name: VERBS[name] for name in ("extend", "done", "retry later", "release")}


def with_token(name: str, which: int, verbs: Mapping[str, TokenCall]) -> dict[str, Operation]:
    """Verb and task → operation with a token of the task. `which`: 0 its first token, -1 its last."""
    return {f"{verb} {name}": token_operation(name, which, call) for verb, call in verbs.items()}


def token_operation(name: str, which: int, call: TokenCall) -> Operation:
    """Impossible while no token was issued. The first token is tried once there is a second one."""

    def operation(state: ShardState) -> Step:
        tokens = state.tokens.get(name, ())
        if not tokens or (which == 0 and len(tokens) == 1):
            return None
        return call(state, name, tokens[which])

    return operation


# The states from which everything is tried: name → the operations that lead there.
STARTS: Mapping[str, tuple[str, ...]] = {
    "absent": (),
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


def start_operations(variant: TubeVariant) -> dict[str, Operation]:
    """The operations of the paths to the starts."""
    return {
        **variant.operations(),
        **{f"put {name}": variant.put(name) for name in "CAB"},
        "put A for later": variant.put("A", NEXT_HOUR),
    }
