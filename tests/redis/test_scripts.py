"""Rules for the Lua files: header and body, keys, constants, callers, and the place an error comes from."""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Set
from itertools import product
from pathlib import Path

import pytest

from core.errors import ScriptFault
from core.model.states import BEST, RANK, Status, best, supersedes
from core.redis import scripts
from core.redis.constants import CONSTANTS, lua_constant
from core.redis.keys import KEYS, kind_of
from tests.audit.damages import damage_everything
from tests.support.every_verb import RecordingStore, call_every_verb, recording_stack, report_token
from tests.support.servers import Server, on_both_servers
from tests.support.stack import Stack, person

LUA = Path(scripts.__file__).resolve().parents[2] / "lua"
FILES = sorted(LUA.glob("**/*.lua"))
PARTS = {path.stem for path in (LUA / "shared").glob("*.lua")}


def body_of(path: Path) -> str:
    """A file without its comments."""
    return "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("--"))


@pytest.mark.parametrize("name", scripts.names())
def test_a_script_has_a_header_with_purpose_arguments_replies_and_events(name: str) -> None:
    first = (LUA / scripts.file_of(name)).read_text().splitlines()[0]
    assert re.fullmatch(rf"-- {name}: .+", first)
    script = scripts.load(name)
    assert {"ARGV", "RETURNS", "EVENTS"} <= set(script.header)
    assert all(script.header[part] for part in ("ARGV", "RETURNS", "EVENTS"))
    assert {part.strip() for part in script.header.get("USES", "").split(",") if part} <= PARTS
    names = [argument.name for argument in script.arguments]
    assert len(names) == len(set(names))
    assert all(argument.kind in {"str", "int", "json", "rest"} for argument in script.arguments)
    assert all(argument.kind != "rest" for argument in script.arguments[:-1])


@pytest.mark.parametrize("name", scripts.names())
def test_a_script_uses_all_its_arguments(name: str) -> None:
    body = body_of(LUA / scripts.file_of(name))
    assert [a.name for a in scripts.load(name).arguments if not re.search(rf"\b{a.name}\b", body)] == []


@pytest.mark.parametrize("name", scripts.names())
def test_a_script_lists_the_events_that_it_emits(name: str) -> None:
    script = scripts.load(name)
    emitted = set(re.findall(r"announce\(suffix, '(\w+)'", script.text))
    assert emitted <= set(re.findall(r"\w+", script.header["EVENTS"]))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_body_uses_its_arguments_by_name(path: Path) -> None:
    assert not re.search(r"\b(KEYS|ARGV)\b", body_of(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_key_is_built_by_its_key_function(path: Path) -> None:
    body = body_of(path)
    functions = set(re.findall(r"\b([a-z]+)_key\(", body))
    assert functions <= set(KEYS)
    roots = {re.split(r"[:<{]", key.pattern)[0] for key in KEYS.values()}
    assert not re.search(rf"['\"]({'|'.join(roots)}):", body)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_script_reads_no_other_clock_than_the_preludes_and_no_random_numbers(path: Path) -> None:
    assert not re.search(r"'TIME'|math\.random|os\.", body_of(path))


def test_every_name_in_drains_is_a_script() -> None:
    assert set(scripts.names()) >= scripts.DRAINS


@on_both_servers
@pytest.mark.parametrize("flags", [False, True])
async def test_both_servers_load_every_script(stack: Stack, server: Server, flags: bool) -> None:
    if flags and not stack.store._flags:
        pytest.skip("this server knows no flags")
    for name in scripts.names():
        script = scripts.load(name, flags)
        assert await stack.redis.script_load(script.text) == script.sha


@pytest.fixture
async def noted(clean_server: Server) -> AsyncIterator[tuple[Stack, RecordingStore]]:
    stack, store = await recording_stack(clean_server)
    yield stack, store
    await stack.end_everything()
    await stack.close()


@on_both_servers
async def test_every_script_has_a_caller_that_passes_all_its_arguments(noted: tuple[Stack, RecordingStore]) -> None:
    stack, store = noted
    await call_every_verb(stack)
    await stack.queue.cancel(await stack.queue.put("t", "a"))
    await (await damage_everything(stack)).repair()
    assert set(store.called) == set(scripts.names())
    for name, counts in store.called.items():
        arguments = scripts.load(name).arguments
        fixed = len([argument for argument in arguments if argument.kind != "rest"])
        assert counts == {fixed} if fixed == len(arguments) else min(counts) >= fixed, name


@on_both_servers
async def test_every_key_on_the_server_is_declared_with_its_type(noted: tuple[Stack, RecordingStore]) -> None:
    stack, _ = noted
    await call_every_verb(stack)
    found = {key: await stack.redis.type(key) for key in stack.server.all_keys()}
    assert {kind_of(key) for key in found} - {None} == {kind_of(key) for key in found}
    wrong = {key: kind for key, kind in found.items() if (declared := kind_of(key)) and declared.type != kind}
    assert wrong == {}
    seen = {kind.name for key in found if (kind := kind_of(key))}
    assert len(seen) > 20


@on_both_servers
async def test_a_script_gets_each_shared_constant_with_its_python_value(stack: Stack) -> None:
    for name, value in CONSTANTS.items():
        lua = json.loads(await stack.redis.eval(f"{lua_constant(name)} return cjson.encode({name})", 0))
        if isinstance(value, Set):
            assert lua == dict.fromkeys(value, True)
        else:
            assert lua == (value if isinstance(value, int | Mapping) else list(value))


@pytest.mark.parametrize("name", scripts.names())
def test_a_script_contains_exactly_the_constants_it_uses(name: str) -> None:
    text = scripts.load(name).text
    defined = set(re.findall(r"\blocal ([A-Z_]+) = ", text))
    used = set(re.findall(r"\b[A-Z_]+\b", re.sub(r"\blocal [A-Z_]+ = .*", "", text)))
    assert CONSTANTS.keys() & defined == CONSTANTS.keys() & used


def test_every_constant_is_used_by_a_script() -> None:
    assert {name for name in CONSTANTS if all(name not in scripts.load(one).text for one in scripts.names())} == set()


def test_every_status_has_a_rank() -> None:
    assert set(RANK) == set(Status)


def test_the_best_of_several_statuses_follows_the_shared_order() -> None:
    for n, better in enumerate(BEST):
        assert all(best([worse, better]) is better for worse in BEST[n + 1 :])
        assert all(best([other, better]) is better for other in set(Status) - set(BEST))
    rest = [status for status in Status if status not in BEST]
    assert all(best([one, other]) is one for one, other in product(rest, rest))


@on_both_servers
@pytest.mark.row("D-13", "D-37")
async def test_a_later_report_supersedes_an_earlier_one_exactly_by_their_ranks(stack: Stack) -> None:
    key = (await stack.deliver(*(person(f"{a}-{b}") for a, b in product(Status, Status)))).key
    for index, (first, second) in enumerate(product(Status, Status)):
        token = await report_token(stack, key, index=index)
        await stack.deliveries.record_report(token, first, "")
        changed = await stack.deliveries.record_report(token, second, "")
        before = first if supersedes(first, Status.QUEUED) else Status.QUEUED
        assert changed == supersedes(second, before), (first, second)
    history = await stack.history(key, limit=500)
    for record, (first, second) in zip(history.recipients, product(Status, Status), strict=True):
        before = first if supersedes(first, Status.QUEUED) else Status.QUEUED
        assert record.outcomes["echo"].status is (second if supersedes(second, before) else before)


@on_both_servers
async def test_an_error_in_a_script_names_the_file_and_the_line(stack: Stack) -> None:
    lines = (LUA / "shared/claiming.lua").read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "#page.tasks < most" in text)
    with pytest.raises(ScriptFault, match=f"lua/shared/claiming.lua:{line}"):
        await stack.store.run("claim", 0, "t", "worker", "", "no number", 1, 1000, 1000)


# One script and one shared part with late functions.
_PART = """-- part: what scripts share
local function both() return lease_key() end
local function inside() return task_key('a') .. due_key() end
-- Called once or never.
local function late(word)
  return both() .. inside() .. lane_key('t', word)
end
local function late_as_well()
  return inside()
end
local function unused() return bell_key('t') end
"""
_SCRIPT = """-- script: what it is for
-- ARGV    word
-- USES    part
-- LATE    late, late_as_well
-- RETURNS nothing
-- EVENTS  none

local found = both() .. due_key()
if word == 'late' then return late(found) end
if word ~= '' then return late_as_well() end
"""


@pytest.fixture
def made_up(tmp_path: Path) -> Iterator[scripts.Script]:
    """The script above, in a folder of its own."""
    for folder in ("shared", "queue"):
        (tmp_path / folder).mkdir()
    (tmp_path / "shared/part.lua").write_text(_PART)
    (tmp_path / "queue/script.lua").write_text(_SCRIPT)
    whole, scripts._LUA = scripts._LUA, tmp_path
    scripts.load.cache_clear()
    yield scripts.load("script")
    scripts._LUA = whole
    scripts.load.cache_clear()


def keys_and_parts(script: scripts.Script) -> Iterator[tuple[str, str]]:
    """Each line of the server's text with its place, without the prelude of every script."""
    lines = zip(script.text.splitlines(), script.origin, strict=True)
    return ((line, place) for line, place in lines if "_key(" in line or "lua/" in place)


def test_a_definition_that_only_a_late_function_needs_is_inside_it_and_all_others_outside(
    made_up: scripts.Script,
) -> None:
    key = {name: KEYS[name].lua for name in ("due", "lease", "task", "lane")}
    part = dict(enumerate(_PART.splitlines(), 1))
    own = dict(enumerate(_SCRIPT.splitlines(), 1))
    late = [part[5], key["task"], key["lane"], part[3], part[6], part[7]]
    late_as_well = [part[8], key["task"], part[3], part[9], part[10]]
    early = [key["due"], key["lease"], part[2]]
    wanted = [*early, *late, *late_as_well, *(own[n] for n in (8, 9, 10))]
    assert [line for line, _ in keys_and_parts(made_up)] == wanted


def test_a_line_of_a_late_function_is_mapped_to_its_file(made_up: scripts.Script) -> None:
    lines = made_up.text.splitlines()
    files = {"part.lua": _PART.splitlines(), "script.lua": _SCRIPT.splitlines()}
    places = [made_up.where(f"user_script:{n}: fault") for n in range(1, len(lines) + 1)]
    seen = []
    for line, place in zip(lines, places, strict=True):
        if found := re.fullmatch(r"lua/(?:shared|queue)/(\w+\.lua):(\d+): fault", place):
            assert files[found[1]][int(found[2]) - 1] == line
            seen.append(f"{found[1]}:{found[2]}")
    parts = [2, 5, 3, 6, 7, 8, 3, 9, 10]
    assert seen == [*(f"part.lua:{n}" for n in parts), *(f"script.lua:{n}" for n in (8, 9, 10))]
    assert made_up.where(f"user_script:{len(lines) + 1}: fault") == f"user_script:{len(lines) + 1}: fault"


@on_both_servers
async def test_a_definition_that_two_late_functions_need_is_defined_in_each(
    stack: Stack, made_up: scripts.Script
) -> None:
    """Neither depends on a definition inside the other."""
    replies = [await stack.redis.eval(made_up.text, 0, "{0}", "0", word) for word in ("late", "other", "")]
    lane = "queue:{0}:lane:t:queue:{0}:leasequeue:{0}:due"
    assert replies == [
        f"queue:{{0}}:leasequeue:{{0}}:task:aqueue:{{0}}:due{lane}",
        "queue:{0}:task:aqueue:{0}:due",
        None,
    ]


@on_both_servers
async def test_an_error_in_a_late_function_names_the_file_and_the_line(stack: Stack) -> None:
    """The error is in a function defined inside it; the delivery is released when it is enqueued."""
    lines = (LUA / "shared/counts.lua").read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if text.startswith("local function next_order()"))
    await stack.redis.set("queue:{0}:counters", "no hash")
    with pytest.raises(ScriptFault, match=f"lua/shared/counts.lua:{line}\\b"):
        await stack.deliver(person(1))
    await stack.redis.delete(*stack.server.all_keys())


@on_both_servers
async def test_an_error_in_a_shared_part_names_its_file_and_the_line(stack: Stack) -> None:
    lines = (LUA / "shared/write_buffer.lua").read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "if n ~= 0 then redis.call" in text)
    await stack.redis.set("queue:{0}:states", "no hash")
    with pytest.raises(ScriptFault, match=f"lua/shared/write_buffer.lua:{line}"):
        await stack.queue.put("t", "a")
    await stack.redis.delete(*stack.server.all_keys())
