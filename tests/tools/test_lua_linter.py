"""`tools.lua_linter` reports what is wrong in a Lua file with its place, and knows the names that a file may use."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands.development import checks
from cli.commands.development.checks import ROOT
from cli.main import main
from tools import lua_linter

with_luacheck = pytest.mark.skipif(not lua_linter.is_installed(), reason=lua_linter.MISSING)


def lint_file(root: Path, body: str, file: str = "queue/sample.lua") -> bool:
    path = root / "lua" / file
    path.parent.mkdir(parents=True)
    path.write_text(body)
    return lua_linter.lint(root)


@with_luacheck
def test_each_wrong_name_is_reported_with_its_file_and_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = """return function(tube, ids, surplus)
  local unused = 1
  local last = Lane.last_of(tube)
  redis_call('DEL', Key.no_such_key(tube))
  for _, tube in ipairs(ids) do redis_call('DEL', tube, undefined) end
  count = 5
  Lane.head_of = false
  print(ids)
  do return last end
  redis_call('GET', last)
end
"""
    assert not lint_file(tmp_path, body)
    assert re.findall(r"lua/queue/sample.lua:(\d+):\d+: \((W\d+)\)", capfd.readouterr().out) == [
        ("1", "W212"),  # unused argument
        ("2", "W211"),  # unused variable
        ("3", "W143"),  # no such function of a module
        ("4", "W143"),  # no such key
        ("5", "W422"),  # shadows an argument
        ("5", "W113"),  # undefined
        ("6", "W111"),  # sets a global
        ("7", "W122"),  # sets a function of another module
        ("8", "W113"),  # a global of Lua that is not provided
        ("10", "W511"),  # unreachable
    ]


@with_luacheck
def test_what_the_library_provides_is_known(tmp_path: Path) -> None:
    body = """return function(tube, id)
  if not Record.read(id) or RANK.sent < now - clock[1] then return redis.log(redis.LOG_WARNING, shard) end
  Record.taken_by[id] = false
  WriteBuffer.gathered.kinds[tube] = true
  redis_call('SET', Key.task(id), cjson.encode({ cmsgpack.pack(id) }))
  return { redis_pcall('GET', id), DAY_MS, Due.PAGE }
end
"""
    assert lint_file(tmp_path, body)


@with_luacheck
def test_a_module_may_define_its_own_functions_only(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = "function Lane.head_of(tube) return tube end\n\nfunction Task.bury(id) return id end\n"
    assert not lint_file(tmp_path, body, "queue/modules/lane.lua")
    assert re.findall(r"lua/queue/modules/lane.lua:\d+", capfd.readouterr().out) == ["lua/queue/modules/lane.lua:3"]


@pytest.mark.parametrize(
    ("call", "finding"),
    [
        ("Lane.move_up(tube)", "Lane.move_up has 2 parameters, called with 1 arguments"),
        ("Lane.move_up(tube, id, { 1, 2 })", "Lane.move_up has 2 parameters, called with 3 arguments"),
        ("Lane.move_up('),(', { tube, id }, id)", "Lane.move_up has 2 parameters, called with 3 arguments"),
        ("Key.task()", "Key.task has 1 parameters, called with 0 arguments"),
        ("Counts.count(tube)", "Counts.count has 2 to 3 parameters, called with 1 arguments"),
        ("own(id, tube)", "own has 1 parameters, called with 2 arguments"),
        ("Lane.move_up(tube, id, unpack(id), id)", "Lane.move_up has 2 parameters, called with 4 arguments"),
    ],
)
def test_a_call_with_too_few_or_too_many_arguments_is_reported(tmp_path: Path, call: str, finding: str) -> None:
    path = tmp_path / "lua" / "sample.lua"
    path.parent.mkdir()
    path.write_text(f"local function own(id) return id end\n\nreturn function(tube, id)\n  return {call}\nend\n")
    assert list(lua_linter.wrong_calls(tmp_path)) == [f"lua/sample.lua:4: {finding}"]


def test_calls_with_as_many_arguments_as_parameters_are_right(tmp_path: Path) -> None:
    path = tmp_path / "lua" / "sample.lua"
    path.parent.mkdir()
    path.write_text("""-- `most`: 1 by default; `most` may be left out.
local function own(id, most) return id, most end

return function(tube, id)
  Lane.move_up(tube, own(id)) -- own(1, 2, 3)
  Lane.move_up(unpack({ tube, id }))
  Counts.count(tube, 'own(1, 2, 3)')
  return Lane.move_up(own(id, 2), string.sub(tube, 1, 2)), Due.overdue(Key.due(), 1)
end
""")
    assert list(lua_linter.wrong_calls(tmp_path)) == []


@pytest.mark.parametrize(
    ("call", "finding"),
    [
        ('run("record_report", 0, suffix, label)', "record_report has 4 arguments, called with 2"),
        ('run("record_report", 0, suffix, label, number, item, 5)', "record_report has 4 arguments, called with 5"),
        ('run("record_report", 0, *known, 1, 2, 3, 4, 5)', "record_report has 4 arguments, called with 5"),
        ('run_for_tenant("create_user", tenant)', "create_user has 3 arguments, called with 1"),
        ('run_replicated("no_such_function", 0)', "there is no function no_such_function"),
    ],
)
def test_a_call_from_python_with_too_few_or_too_many_arguments_is_reported(
    tmp_path: Path, call: str, finding: str
) -> None:
    path = tmp_path / "core" / "sample.py"
    path.parent.mkdir()
    path.write_text(f"async def sample(store):\n    await store.{call}\n")
    assert list(lua_linter.wrong_runs(tmp_path)) == [f"core/sample.py:2: {finding}"]


def test_calls_from_python_with_the_arguments_of_the_header_are_right(tmp_path: Path) -> None:
    path = tmp_path / "core" / "sample.py"
    path.parent.mkdir()
    path.write_text("""async def sample(store, name, ids):
    await store.run("record_report", 0, 1, 2, 3, 4)
    await store.run("record_report", *name[:4], 4)
    await store.run("claim", 0, *ids)
    await store.run(name, 0)
    store.run()
""")
    assert list(lua_linter.wrong_runs(tmp_path)) == []


@with_luacheck
def test_the_linter_fails_after_a_call_with_a_wrong_number_of_arguments(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert lint_file(tmp_path / "right", "return function(tube, lane) return Lane.head_of(tube, lane) end\n")
    assert not lint_file(tmp_path / "wrong", "return function(tube) return Lane.head_of(tube) end\n")
    assert "lua/queue/sample.lua:1: Lane.head_of has 2 parameters, called with 1 arguments" in capfd.readouterr().out


def test_without_luacheck_the_linter_fails_and_names_the_package(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tools.lua_linter"]
    run = subprocess.run(
        words, cwd=ROOT, env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (1, lua_linter.MISSING + "\n")


def test_a_check_without_luacheck_names_the_skipped_step_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(checks, "STEPS", [step for step in checks.STEPS if step[0] == "lua"])
    monkeypatch.setattr(checks, "further_pythons", dict)
    monkeypatch.setattr(checks, "suite_passes", lambda *_: True)
    assert main(["check"]) == 1
    assert capfd.readouterr().out.splitlines()[-2:] == [
        f"== lua skipped: {lua_linter.MISSING}",
        "ada: check failed: lua",
    ]
