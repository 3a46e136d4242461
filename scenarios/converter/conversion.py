"""Converts the folder of a bot of Coreness 1.x: scenarios, their triggers and schedules, and the commands of the menu.

Guarantees: what is written can be loaded; all that was left out or may differ is a problem with file and line.
Comments are not carried over. Reads only the folder, writes nothing.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from scenarios.bot import Place
from scenarios.bot.data import Data, ListNode, MapNode, Node, Scalar, plain, text_of
from scenarios.converter.actions import Action, ActionConverter, ConditionRefused, Names, condition, stored_names
from scenarios.loader.composer import compose
from scenarios.loader.reading import Problem, Problems
from scenarios.words import sentence

_BOT_FILES = ("tg_bot.yaml", "bots/telegram.yaml")
_TEXT_RULES: Mapping[str, str] = {"equals": "exact", "contains": "contains", "regex": "regex"}
_MEMBERS: Mapping[str, str] = {"member_joined": "new_member", "member_left": "left_member"}
_EVENTS: Mapping[str, tuple[str, str]] = {"message": ("text", "event_text"), "callback": ("callback", "callback_data")}
"""The type of an event → the section of triggers.yaml, and the field that its entries compare."""


class Converted(NamedTuple):
    """`files`: name below the new folder → text. `problems`: what was left out, in the order of the files."""

    files: Mapping[str, str]
    problems: list[Problem]


class _Trigger(NamedTuple):
    file: str
    node: Node
    scenario: str


def convert(folder: Path) -> Converted:
    """Return the files of Ada for a bot of Coreness 1.x. Raises OSError, UnicodeDecodeError."""
    problems, variables = Problems(), set[str]()
    roots = {
        name: compose((folder / name).read_text("utf-8"), name, problems)
        for name in sorted(one.relative_to(folder).as_posix() for one in (folder / "scenarios").rglob("*.yaml"))
    }
    written: dict[str, Data] = {}
    triggers = [one for file, root in roots.items() for one in _triggers(file, root)]
    names = Names(_buttons(triggers), {k: v for root in roots.values() for k, v in _stored(root)})
    taken = {name for root in roots.values() for name, _ in _scenarios(root)}
    for file, root in roots.items():
        actions = ActionConverter(file, names, problems)
        flow = FlowConverter(actions, taken)
        written[file] = {
            part: {"actions": converted}
            for name, node in _scenarios(root)
            for part, converted in flow.scenarios_of(name, node.get("step")).items()
        }
        variables |= actions.variables
    written["triggers.yaml"] = _sections(triggers, problems)
    written["schedule.yaml"] = {
        name: {"each": plain(node.get("schedule") or node), "scenario": name}
        for root in roots.values()
        for name, node in _scenarios(root)
        if node.get("schedule") is not None
    }
    written["variables.yaml"] = {"person": dict.fromkeys(sorted(variables), "text")} if variables else {}
    written["bot.yaml"] = _bot(folder, problems)
    files = {name: _yaml(data) for name, data in written.items() if data}
    return Converted(files, problems.in_order())


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as an author does, with `|`."""


def _write_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _write_text)


def _yaml(data: object) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=120)
    return text


def _scenarios(root: Node | None) -> Iterator[tuple[str, MapNode]]:
    for key, node in root.pairs if isinstance(root, MapNode) else ():
        if isinstance(node, MapNode):
            yield key.text, node


def _stored(root: Node | None) -> Iterator[tuple[str, str]]:
    for _, node in _scenarios(root):
        yield from stored_names(node).items()


def _triggers(file: str, root: Node | None) -> Iterator[_Trigger]:
    for name, node in _scenarios(root):
        listed = node.get("trigger")
        for entry in listed.items if isinstance(listed, ListNode) else ():
            yield _Trigger(file, entry, name)


def _buttons(triggers: list[_Trigger]) -> dict[str, str]:
    """Return which scenario a button with this callback data starts."""
    found = {}
    for trigger in triggers:
        data = trigger.node.get("callback_data") if isinstance(trigger.node, MapNode) else None
        if isinstance(data, Scalar):
            found[data.text] = trigger.scenario
    return found


def _sections(triggers: list[_Trigger], problems: Problems) -> dict[str, Any]:
    """Return triggers.yaml. A button leads to its scenario by itself, so its callback data needs no entry."""
    sections: dict[str, Any] = {}
    for trigger in triggers:
        fields = plain(trigger.node)
        try:
            place = _place_of(fields if isinstance(fields, dict) else {})
        except ConditionRefused as refused:
            where = Place(trigger.file, trigger.node.line, trigger.node.column)
            problems.error(
                where, "NO_SUCH_TRIGGER", sentence("not_started", text=refused.said, scenario=trigger.scenario)
            )
            continue
        if place is not None:
            section, kind, value = place
            found = sections.setdefault(section, {})
            entries, entry = (found, kind) if value is None else (found.setdefault(kind, {}), str(value))
            if entries.setdefault(entry, trigger.scenario) != trigger.scenario:
                where = Place(trigger.file, trigger.node.line, trigger.node.column)
                problems.error(
                    where, "NO_SUCH_TRIGGER", sentence("starts_already", entry=entry, scenario=entries[entry])
                )
    return sections


def _place_of(fields: Mapping[str, Data]) -> tuple[str, str, Data] | None:
    """Return section, kind and entry of triggers.yaml for a trigger; None if it needs none. Raises ConditionRefused."""
    event = str(fields.get("event_type"))
    rest = {name: value for name, value in fields.items() if name != "event_type"}
    if event in _MEMBERS and not rest:
        return _MEMBERS[event], "default", None
    if event not in _EVENTS:
        raise ConditionRefused(sentence("ada_has_no_trigger", event=event))
    section, compared = _EVENTS[event]
    if len(rest) > 1:
        raise ConditionRefused(sentence("entry_triggers_yaml_compares", words=", ".join(rest)))
    if not rest:
        return section, "*", None
    ((name, value),) = rest.items()
    if name == "callback_data":
        return None
    if name in (compared, "user_state"):
        return section, "state" if name == "user_state" else "exact", value
    if name == "condition":
        return section, *_entry(str(value), compared)
    raise ConditionRefused(sentence("triggers_yaml_cannot_compare", name=name))


def _entry(text: str, compared: str) -> tuple[str, Data]:
    found = condition(text)
    rule = found.get(compared)
    name = str(rule.get("rule")) if isinstance(rule, Mapping) else ""
    if not isinstance(rule, Mapping) or len(found) != 1 or name not in _TEXT_RULES or compared == "callback_data":
        raise ConditionRefused(sentence("triggers_yaml_has_no", token=text.strip()))
    return _TEXT_RULES[name], rule["value"]


def _bot(folder: Path, problems: Problems) -> dict[str, Data]:
    """Return bot.yaml: the commands. A token is named and not carried over."""
    name = next((one for one in _BOT_FILES if (folder / one).exists()), None)
    root = compose((folder / name).read_text("utf-8"), name, problems) if name else None
    if not isinstance(root, MapNode) or name is None:
        return {}
    for key, _ in root.pairs:
        if key.text == "bot_token":
            problems.error(Place(name, key.line, key.column), "TOKEN", sentence("set_ada_bot_token"))
    commands = root.get("commands")
    return {"commands": plain(commands)} if commands is not None else {}


_GO_ON = "continue"
_JUMP = "jump_to_scenario"
_ENDS = ("abort", "break", "stop")


class FlowConverter:
    """Converts the scenarios of one file. `taken`: the names of all scenarios of the bot; new ones are added.

    Steps run one after the other, so each action waits for the one before (`chain: true`). A `transition` to a scenario
    becomes a branch, or a scenario with a `chain`; the steps after it become a scenario of their own, `name_2`. A
    transition that ends the scenario becomes `chain_drop`. What Ada does not have is reported with its line.
    """

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
