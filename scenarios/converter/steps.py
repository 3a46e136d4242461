"""Turns the steps of a scenario of Coreness 1.x into actions of Ada.

Steps run one after the other, so each action waits for the one before (`chain: true`). A `transition` to a scenario
becomes a branch, or a scenario with a `chain`; the steps after it become a scenario of their own, `name_2`. A
transition that ends the scenario becomes `chain_drop`. What Ada does not have is reported with its line.
"""

from collections.abc import Mapping

from scenarios.bot.nodes import ListNode, MapNode, Node, text_of
from scenarios.converter.actions import Action, ActionConverter
from scenarios.words import sentence

_GO_ON = "continue"
_JUMP = "jump_to_scenario"
_ENDS = ("abort", "break", "stop")


class FlowConverter:
    """Converts the scenarios of one file. `taken`: the names of all scenarios of the bot; new ones are added."""

    def __init__(self, actions: ActionConverter, taken: set[str]) -> None:
        self._actions = actions
        self._report = actions.report
        self._taken = taken

    def scenarios_of(self, name: str, steps: Node | None) -> dict[str, list[Action]]:
        """Return the actions of a scenario, and of those that its later parts became: `name_2`, `name_3`, …"""
        found: dict[str, list[Action]] = {name: []}
        actions = found[name]
        nodes = steps.items if isinstance(steps, ListNode) else ()
        for number, step in enumerate(nodes):
            if not isinstance(step, MapNode):
                self._report(step, "NOT_A_STEP", sentence("step_mapping_action"))
                continue
            last = number + 1 == len(nodes)
            targets = self._transitions(step, last=last)
            action = self._actions.action_of(step)
            if action is None:
                if set(targets.values()) != {_GO_ON}:
                    self._report(step, "NO_TRANSITION", sentence("transitions_go_next_step"))
                continue
            actions.append(action if not actions else {**action, "chain": True})
            if not any(one.startswith(_JUMP) for one in targets.values()):
                self._end_early(step, actions[-1], targets)
                if targets["success"] == targets["failed"] != _GO_ON:
                    self._report_unreachable(nodes[number + 1 :])
                    break
                continue
            rest = self._new_name(f"{name}_{len(found) + 1}") if _GO_ON in targets.values() and not last else ""
            self._fork(step, actions, targets, rest, found)
            if rest:
                actions = found.setdefault(rest, [])
            else:
                self._report_unreachable(nodes[number + 1 :])
                break
        return found

    # The flow

    def _transitions(self, step: MapNode, *, last: bool) -> dict[str, str]:
        """Return what follows `success` and `failed`: `continue`, `abort`, … or `jump_to_scenario NAME`."""
        listed = step.get("transition")
        found: dict[str, str] = {}
        for entry in listed.items if isinstance(listed, ListNode) else ():
            if isinstance(entry, MapNode):
                found[text_of(entry.get("action_result"))] = self._target_of(entry, last=last)
        always = found.get("any", _GO_ON)
        failed = found.get("failed", found.get("error", always))
        if found.get("error", failed) != failed:
            self._report(listed or step, "ONE_FAILURE", sentence("ada_knows_one_kind"))
        return {"success": found.get("success", always), "failed": failed}

    def _target_of(self, entry: MapNode, *, last: bool) -> str:
        does = text_of(entry.get("transition_action"))
        if does == _JUMP:
            return f"{_JUMP} {text_of(entry.get('transition_value'))}"
        if does == "break" and last:
            return _GO_ON
        if does not in (_GO_ON, *_ENDS):
            self._report(entry, "UNKNOWN_TRANSITION", sentence("ada_has_no", does=does))
            return _GO_ON
        return does

    def _end_early(self, step: MapNode, action: Action, targets: Mapping[str, str]) -> None:
        """Let an action drop what follows it, if a transition says so."""
        outcomes = {"success": "completed", "failed": "drop" if "when" in action else "failed"}
        ends = [outcomes[result] for result, target in targets.items() if target in _ENDS]
        if ends:
            action["chain_drop"] = True if len(ends) == len(outcomes) else ends[0]
        if "break" in targets.values():
            self._report(step, "BREAK_IS_ABORT", sentence("ada_ends_scenarios_called"))

    def _fork(
        self,
        step: MapNode,
        actions: list[Action],
        targets: Mapping[str, str],
        rest: str,
        found: dict[str, list[Action]],
    ) -> None:
        """Add what leads to other scenarios after the last action. `rest`: the scenario of the steps after it."""
        success, failed = (_scenario_of(targets[result], rest) for result in ("success", "failed"))
        self._end_early(step, actions[-1], targets)
        if success == failed or "chain_drop" in actions[-1]:
            actions.append({"type": "scenario", "name": success or failed, "chain": True})
        elif "when" in actions[-1]:
            actions[-1] = _branch(actions[-1], success, failed)
        else:
            jump, outcome, other = (failed, "failed", success) if failed != rest else (success, "completed", failed)
            if other:
                # The other way follows only a scenario that was left out: this one must not end as left out itself.
                completed = self._new_name(f"{rest or jump}_{outcome}")
                found[completed] = [{"type": "scenario", "name": jump}, {"type": "validator", "chain": True}]
                jump = completed
            actions.append({"type": "scenario", "name": jump, "chain": outcome})
            if other:
                actions.append({"type": "scenario", "name": other, "chain": "drop"})

    def _new_name(self, wanted: str) -> str:
        """Return a name that no scenario of the bot has."""
        while wanted in self._taken:
            wanted += "_"
        self._taken.add(wanted)
        return wanted

    def _report_unreachable(self, steps: tuple[Node, ...]) -> None:
        if steps:
            self._report(steps[0], "UNREACHABLE", sentence("no_transition_leads_step"))


def _scenario_of(target: str, rest: str) -> str:
    """Return the scenario that a transition leads to, "" if there is none."""
    return target.removeprefix(_JUMP).strip() if target.startswith(_JUMP) else rest if target == _GO_ON else ""


def _branch(validator: Action, success: str, failed: str) -> Action:
    """Return a branch in place of a validator: to `success` if its condition holds, else to `failed`."""
    wanted = validator["when"] if success else {"not": validator["when"]}
    action: Action = {"type": "branch", "cases": [{"when": wanted, "scenario": success or failed}]}
    if success and failed:
        action["otherwise"] = failed
    return {**action, **({"chain": True} if "chain" in validator else {})}
