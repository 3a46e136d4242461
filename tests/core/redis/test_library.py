"""Rules for the Lua files: header and body, keys, constants, callers, and the place an error comes from; the library
that is built from them, on the server.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from core.audit.invariants.invariant import MAY_END
from core.errors import FunctionFault
from core.model.states import BEST, RANK, Status, best
from core.queue import NewTask
from core.redis import library
from core.redis.constants import CONSTANTS, lua_constant
from core.redis.keys import KEYS, Lifetime, kind_of
from tests.core.audit.damages import damage_everything
from tests.core.deliveries.delivery_model import supersedes
from tests.support.every_verb import RecordingStore, call_every_verb, recording_stack, report_token
from tests.support.paths import ROOT
from tests.support.servers import Server, on_both_servers
from tests.support.stack import Stack, person

LUA = Path(library.__file__).resolve().parents[2] / "lua"
FILES = sorted(LUA.glob("**/*.lua"))


@cache
def body_of(path: Path) -> str:
    """A file without its comments."""
    return "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("--"))


def test_a_function_has_a_header_with_purpose_arguments_replies_and_events() -> None:
    for name in library.names():
        first = (LUA / library.file_of(name)).read_text().splitlines()[0]
        assert re.fullmatch(rf"-- {name}: .+", first)
        function = library.function(name)
        assert {"ARGV", "RETURNS", "EVENTS"} <= set(function.header), name
        assert all(function.header[part] for part in ("ARGV", "RETURNS", "EVENTS")), name
        names = [argument.name for argument in function.arguments]
        assert len(names) == len(set(names)), name
        assert all(argument.kind in {"str", "int", "json", "rest"} for argument in function.arguments), name
        assert all(argument.kind != "rest" for argument in function.arguments[:-1]), name


def test_a_function_uses_all_its_arguments() -> None:
    for name in library.names():
        body = body_of(LUA / library.file_of(name))
        unused = [a.name for a in library.function(name).arguments if not re.search(rf"\b{a.name}\b", body)]
        assert unused == [], name


@cache
def blocks_of(file: str) -> dict[str, str]:
    """The functions of a file by name; what is outside of them under ""."""
    found: dict[str, str] = {}
    name = ""
    for line in body_of(LUA / file).splitlines():
        if start := re.match(r"(?:local )?function ([\w.]+)\(", line):
            name = start[1]
        elif line and not line.startswith((" ", "end")):
            name = ""
        found[name] = found.get(name, "") + line + "\n"
    return found


KINDS = ("PlainTask", "ParcelTask")
STEP = r"(?:Kinds\.of\(\w+\)|\bkind)\.(\w+)"
"""A function of a kind of task is called through the kind."""


def steps_of_kinds(text: str) -> set[tuple[str, str]]:
    """The functions of all kinds that a text may call."""
    return {(kind, step) for kind in KINDS for step in re.findall(STEP, text)}


def reached_from(name: str) -> str:
    """The text of everything that a function may run."""
    files = {module: file for file, module in library.modules().items()}
    text, done = body_of(LUA / library.file_of(name)), set[tuple[str, str]]()
    while True:
        called = (set(re.findall(rf"\b({'|'.join(files)})\.(\w+)", text)) | steps_of_kinds(text)) - done
        if not called:
            return text
        done |= called
        for module, function in called:
            blocks, wanted = blocks_of(files[module]), {f"{module}.{function}"}
            while more := {one for one in blocks if one and any(one in blocks.get(w, "") for w in wanted)} - wanted:
                wanted |= more
            text += "".join(blocks.get(one, "") for one in wanted)


def test_a_function_lists_the_events_that_it_emits() -> None:
    for name in library.names():
        emitted = set(re.findall(r"\bannounce\(suffix, '(\w+)'", reached_from(name)))
        assert emitted <= set(re.findall(r"\w+", library.function(name).header["EVENTS"])), name


def files_with(pattern: str) -> list[str]:
    """The files whose code has this."""
    return [str(path.relative_to(LUA)) for path in FILES if re.search(pattern, body_of(path))]


def test_a_body_uses_its_arguments_by_name() -> None:
    assert files_with(r"\b(KEYS|ARGV)\b") == []


def test_every_key_is_built_by_its_key_function() -> None:
    for path in FILES:
        assert set(re.findall(r"\bKey\.(\w+)\(", body_of(path))) <= set(KEYS), path
    roots = {re.split(r"[:<{]", key.pattern)[0] for key in KEYS.values()}
    assert files_with(rf"['\"]({'|'.join(roots)}):") == []


def test_a_function_reads_no_other_clock_than_the_preludes_and_no_random_numbers() -> None:
    assert files_with(r"'TIME'|math\.random|os\.") == []


def test_another_file_uses_each_function_of_a_module() -> None:
    for file, module in library.modules().items():
        others = "".join(body_of(path) for path in FILES if path != LUA / file)
        functions = set(re.findall(rf"^function ({module}\.\w+)", body_of(LUA / file), re.MULTILINE))
        steps = {f"{kind}.{step}" for kind, step in steps_of_kinds(others)}
        unused = {one for one in functions - steps if not re.search(rf"\b{one}\b", others)}
        assert unused <= {f"{module}.begin"}


def test_all_kinds_of_tasks_have_the_same_functions() -> None:
    files = {module: file for file, module in library.modules().items()}
    steps = [set(re.findall(rf"^function {kind}\.(\w+)", body_of(LUA / files[kind]), re.MULTILINE)) for kind in KINDS]
    own = {step for _, step in steps_of_kinds(library.current().text)}
    assert own <= steps[0] & steps[1] | {"INDEXED"}


def test_the_queue_knows_no_deliveries() -> None:
    modules = "|".join(module for name, module in library.modules().items() if name.startswith("delivery/"))
    knowing = rf"\b(?:{modules})\.|Key\.(?:history|outcomes|reached|order)\(|\btask\.(?:history|place)\b"
    assert [file for file in files_with(knowing) if file.startswith(("queue/", "operations/"))] == []


def test_every_name_in_drains_is_a_function() -> None:
    assert set(library.names()) >= library.DRAINS


@on_both_servers
async def test_both_servers_register_every_function_with_its_flag(stack: Stack) -> None:
    (found,) = await stack.store.command("FUNCTION", "LIST", "LIBRARYNAME", library.current().name)
    flags = {one["name"]: set(one["flags"]) for one in found["functions"]}
    expected = {
        f"{library.current().name}_{name}": {"no-writes"}
        if name.startswith(library.READS)
        else {"allow-oom"}
        if name in library.DRAINS
        else set()
        for name in library.names()
    }
    assert flags == expected


@pytest.fixture
async def noted(clean_server: Server) -> AsyncIterator[tuple[Stack, RecordingStore]]:
    stack, store = await recording_stack(clean_server)
    yield stack, store
    await stack.end_everything()
    await stack.close()


@on_both_servers
async def test_every_function_has_a_caller_that_passes_all_its_arguments(noted: tuple[Stack, RecordingStore]) -> None:
    stack, store = noted
    await call_every_verb(stack)
    await stack.queue.cancel(await stack.queue.put("t", NewTask("a")))
    await (await damage_everything(stack)).repair()
    assert set(store.called) == set(library.names())
    for name, counts in store.called.items():
        arguments = library.function(name).arguments
        fixed = len([argument for argument in arguments if argument.kind != "rest"])
        assert counts == {fixed} if fixed == len(arguments) else min(counts) >= fixed, name


@on_both_servers
async def test_every_key_on_the_server_is_declared_with_its_type(noted: tuple[Stack, RecordingStore]) -> None:
    stack, _ = noted
    await call_every_verb(stack)
    types = {key: await stack.redis.type(key) for key in stack.server.all_keys()}
    found = {key: kind for key, kind in types.items() if kind != "none"}  # the others have expired meanwhile
    assert {kind_of(key) for key in found} - {None} == {kind_of(key) for key in found}
    wrong = {key: kind for key, kind in found.items() if (declared := kind_of(key)) and declared.type != kind}
    assert wrong == {}
    seen = {kind.name for key in found if (kind := kind_of(key))}
    assert len(seen) > 20


@on_both_servers
async def test_a_function_gets_each_shared_constant_with_its_python_value(stack: Stack) -> None:
    for name, value in CONSTANTS.items():
        lua = json.loads(await stack.redis.eval(f"{lua_constant(name)} return cjson.encode({name})", 0))
        if isinstance(value, Set):
            assert lua == dict.fromkeys(value, True)
        else:
            assert lua == (value if isinstance(value, int | Mapping) else list(value))


def test_every_constant_is_used_by_a_function() -> None:
    text = library.current().text
    assert {name for name in CONSTANTS if len(re.findall(rf"\b{name}\b", text)) < 2} == set()


def test_every_name_of_a_module_that_is_used_is_defined() -> None:
    """A missing one would only be noticed when its line runs."""
    text = re.sub(r"'[^'\n]*'", "''", library.current().text)
    defined = re.findall(r"^function ([A-Z]\w+\.\w+)|^ *([A-Z]\w+\.\w+) = ", text, re.MULTILINE)
    used = set(re.findall(r"\b[A-Z][a-z]\w*\.\w+", text))
    assert used - {name for pair in defined for name in pair} == set()


def test_what_runs_for_every_task_makes_no_function_at_each_call() -> None:
    """Making one costs more than calling it."""
    for path in FILES:
        if path.parent.name == "modules" or path.stem in ("put", "claim", "settle", "enqueue", "extend"):
            assert not re.search(r"^ +.*\bfunction\b|\(function\b", body_of(path), re.MULTILINE), path


def test_every_status_has_a_rank() -> None:
    assert set(RANK) == set(Status)


def test_the_best_of_several_statuses_follows_the_shared_order() -> None:
    for n, better in enumerate(BEST):
        assert all(best([worse, better]) is better for worse in BEST[n + 1 :])
        assert all(best([other, better]) is better for other in set(Status) - set(BEST))
    rest = [status for status in Status if status not in BEST]
    assert all(best([one, other]) is one for one, other in product(rest, rest))


@on_both_servers
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
    lines = (LUA / "queue/modules/claiming.lua").read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "#page.tasks < most" in text)
    with pytest.raises(FunctionFault, match=f"lua/queue/modules/claiming.lua:{line}"):
        await stack.store.run("claim", 0, "t", "worker", "", "no number", 1, 1000, 1000)


_SCRIPT = """-- script: what it is for
-- ARGV    word, more:rest
-- RETURNS the words
-- EVENTS  none

return function(word, more)
  return { Part.doubled(word), more[1], more[2], #more }
end
"""
_PART = """-- part: what functions share

local times = 2
-- A comment has no line on the server.
function Part.doubled(word) return string.rep(Later.same(word), times) end
"""
_LATER = """-- later: a module behind the module that uses it

function Later.same(word) return word end
"""


@contextmanager
def made_up(folder: Path, script: str = _SCRIPT) -> Iterator[library.Library]:
    """The library of the files above."""
    files = {"queue/functions/script": script, "shared/modules/part": _PART, "shared/modules/later": _LATER}
    for file, text in files.items():
        (folder / f"{file}.lua").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{file}.lua").write_text(text)
    whole, library._LUA = library._LUA, folder
    library.current.cache_clear()
    try:
        yield library.current()
    finally:
        library._LUA = whole
        library.current.cache_clear()


async def run_made_up(stack: Stack, made: library.Library, *words: str) -> object:
    await stack.store.command("FUNCTION", "LOAD", "REPLACE", made.text)
    return await stack.store.command("FCALL", made.functions["script"].registered, 1, "key", "{0}", "0", *words)


@on_both_servers
async def test_a_function_uses_modules_in_any_order(stack: Stack, tmp_path: Path) -> None:
    with made_up(tmp_path) as made:
        assert await run_made_up(stack, made, "a", "b", "c") == ["aa", "b", "c", 2]
    await stack.store.command("FUNCTION", "DELETE", made.name)


@on_both_servers
async def test_two_versions_of_a_function_run_side_by_side(stack: Stack, tmp_path: Path) -> None:
    with made_up(tmp_path / "old") as old:
        await run_made_up(stack, old, "a")
    with made_up(tmp_path / "new", _SCRIPT.replace("#more }", "'new' }")) as new:
        assert new.name != old.name
        assert (await run_made_up(stack, new, "a", "b", "c"), await run_made_up(stack, old, "a", "b", "c")) == (
            ["aa", "b", "c", "new"],
            ["aa", "b", "c", 2],
        )
    for made in (old, new):
        await stack.store.command("FUNCTION", "DELETE", made.name)


@pytest.mark.parametrize(
    "change",
    [("function(word, more)", "function(more, word)"), ("return function(word, more)", "local function f(word, more)")],
    ids=["other parameters", "nothing returned"],
)
def test_a_file_whose_function_does_not_take_the_arguments_of_its_header_is_refused(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"lua/queue/functions/script.lua must return one function\(word, more\)"):
        with made_up(tmp_path, _SCRIPT.replace(*change)):
            pass


def test_every_line_of_a_file_is_mapped_to_it(tmp_path: Path) -> None:
    with made_up(tmp_path) as made:
        lines = made.text.splitlines()
    files = {"part.lua": _PART, "script.lua": _SCRIPT, "later.lua": _LATER}
    seen = set()
    for n, line in enumerate(lines, 1):
        if found := re.fullmatch(
            r"lua/(?:shared/modules|queue/functions)/(\w+\.lua):(\d+): fault", made.where(f"user_function:{n}: fault")
        ):
            assert files[found[1]].splitlines()[int(found[2]) - 1] == line
            seen.add(f"{found[1]}:{found[2]}")
    assert seen == {"part.lua:3", "part.lua:5", "later.lua:3", "script.lua:6", "script.lua:7", "script.lua:8"}
    assert made.where(f"user_function:{len(lines) + 1}: fault") == f"user_function:{len(lines) + 1}: fault"


@on_both_servers
async def test_a_call_that_failed_leaves_nothing_behind(stack: Stack) -> None:
    """The second task of the page cannot be written: what the page had gathered by then is forgotten."""
    kept = await stack.queue.put("t", NewTask("kept", lane="a"))
    await stack.redis.set("queue:{0}:lane:t:lane", "no sorted set")
    row = ("{id}", "tenant", "lane", "5", "", "", "", "", "", "", "", "")
    page = [word.format(id=task) for task in ("first", "second") for word in row]
    with pytest.raises(FunctionFault, match=r"lua/queue/modules/lane.lua"):
        await stack.store.run("put", 0, "client", 1, 1, "t", *page)
    await stack.redis.delete("queue:{0}:lane:t:lane")
    await stack.redis.zrem("queue:{0}:tenants:t", "tenant")
    await stack.queue.bury(kept)
    assert await stack.state(kept) == "buried"
    await stack.audit()
    await stack.queue.kick(kept)
    assert await stack.finish_all() == ["kept"]


@on_both_servers
async def test_an_error_in_a_module_names_the_file_and_the_line(stack: Stack) -> None:
    """The delivery is released when it is enqueued."""
    lines = (LUA / "queue/modules/counts.lua").read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if text.startswith("function Counts.next_order()"))
    await stack.redis.set("queue:{0}:counters", "no hash")
    with pytest.raises(FunctionFault, match=f"lua/queue/modules/counts.lua:{line}\\b"):
        await stack.deliver(person(1))
    await stack.redis.delete(*stack.server.all_keys())


@on_both_servers
async def test_an_error_in_a_shared_part_names_its_file_and_the_line(stack: Stack) -> None:
    lines = (LUA / "shared/modules/write_buffer.lua").read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "if n ~= 0 then redis_call" in text)
    await stack.redis.set("queue:{0}:states", "no hash")
    with pytest.raises(FunctionFault, match=f"lua/shared/modules/write_buffer.lua:{line}"):
        await stack.queue.put("t", NewTask("a"))
    await stack.redis.delete(*stack.server.all_keys())


def test_the_audit_accepts_the_end_of_each_key_that_a_function_lets_expire() -> None:
    """`./ada audit --repair` gives a key for ever what it takes for a wrong end."""
    sources = [path.read_text() for path in (ROOT / "lua").rglob("*.lua")]
    expiring = {name for source in sources for name in re.findall(r"'PEXPIRE', Key\.(\w+)", source)}
    assert {name for name in expiring if KEYS[name].lifetime in (Lifetime.FOREVER, Lifetime.WORK)} == set(MAY_END)
