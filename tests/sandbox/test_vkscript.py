"""The VKScript evaluator: what the language can, what it cannot, and that no program breaks out of a string."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.vkscript import CompileError, RunError, Value, execute

pytestmark = pytest.mark.row("D-43")


def no_call(method: str, parameters: Mapping[str, Value]) -> Value:
    raise AssertionError(f"{method} was called with {parameters}")


def echo(method: str, parameters: Mapping[str, Value]) -> Value:
    return {"method": method, **parameters}


def value(code: str) -> Value:
    return execute(code, no_call)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("return 1 + 2 * 3 - 4 / 2;", 5),
        ("return (1 + 2) * 3 % 4;", 1),
        ("return 7 / 2;", 3.5),
        ("return 1 << 4 | 1;", 17),
        ("return 6 & 3;", 2),
        ("return 0x1f + 1.5e1;", 46.0),
        ("return -2 + 1;", -1),
        ("return !0 && !false;", True),
        ("return null || 'second';", "second"),
        ("return false && x;", False),
        ("return 1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3;", True),
        ("return 'b' > 'a';", True),
        ("return 1 == '1' && 1 != '2';", True),
        ("return 'a' + 1 + true + null;", "a11"),
        ("return 1 + 1 + 'a';", "2a"),
        ("return [1, 'two', [3], {a: 4, \"b\": null}];", [1, "two", [3], {"a": 4, "b": None}]),
        ("var a = 1, b; a = a + 1; return [a, b];", [2, None]),
        ("var a = {}; a.b = {}; a.b.c = 1; a['d'] = 2; return a;", {"b": {"c": 1}, "d": 2}),
        ("var a = [1, 2]; a[0] = 5; a[2] = 6; return a;", [5, 2, 6]),
        ("var a = {b: 1, c: 2}; delete a.b; return a;", {"c": 2}),
        ("var a = [1, 2]; delete a[0]; return a;", [2]),
        ("return [{id: 1}, {id: 2}, 3]@.id;", [1, 2, None]),
        ("return null.a.b;", None),
        ("return [1, 2][5];", None),
        ("return 'abc'[1];", "b"),
        ("return [1, 2].length + 'abc'.length;", 5),
        ("if (1 == 2) return 'a'; else if (true) { return 'b'; } else return 'c';", "b"),
        ("var i = 0; var s = ''; while (i < 3) { s = s + i; i = i + 1; } return s;", "012"),
        ("while (true) { return 1; } return 2;", 1),
        ("// a comment\nreturn /* another */ 1;", 1),
        ("return;", None),
        ("var a = 1;", None),
        ("", None),
        (";;", None),
        ("return parseInt('12abc') + parseInt(2.9) + parseInt('') + parseInt('-3');", 11),
        ("return parseDouble('1.5');", 1.5),
        ("var a = [1]; a.push(2, 3); a.unshift(0); return [a.pop(), a.shift(), a];", [3, 0, [1, 2]]),
        ("return [1, 2, 3, 4].slice(1, 3);", [2, 3]),
        ("return 'abcd'.slice(-2);", "cd"),
        ("var a = [1, 2, 3, 4]; return [a.splice(1, 2, 'x'), a];", [[2, 3], [1, "x", 4]]),
        ("return 'abcdef'.substr(2, 3) + 'abc'.substr(-1);", "cdec"),
        ("return 'a,b'.split(',') + '';", "a,b"),
        ("return ['a', 'b'].indexOf('b') + 'abc'.indexOf('z');", 0),
        ("return ['a', 1].join('-');", "a-1"),
        ("return [].pop();", None),
        ("return 'it\\'s \\u0041\\n\\q';", "it's A\nq"),
        ('return "\\ud83d\\ude00";', "😀"),
        ('return "\\ud83d";', "\ufffd"),
    ],
)
def test_the_language(code: str, expected: Value) -> None:
    assert value(code) == expected


def test_values_do_not_share_their_parts() -> None:
    assert value("var a = [1]; var b = [a]; a.push(2); b[0].push(3); return [a, b];") == [[1, 2], [[1, 3]]]
    assert value("var a = []; a.push(a); a.push(a); return a;") == [[], [[]]]


def test_api_calls_take_an_object_and_give_their_answer() -> None:
    code = "var me = API.users.get({user_ids: [1, 2], name: 'x'}); return [me.method, me.user_ids, API.a.b().method];"
    assert execute(code, echo) == ["users.get", [1, 2], "a.b"]


@pytest.mark.parametrize(
    "code",
    [
        "return 1",
        "return",
        "var a = ;",
        "return [1,];",
        "return {a 1};",
        "{",
        "}",
        "return 1;}",
        "return (1;",
        "function f() { return 1; }",
        "for (;;) {}",
        "var if = 1;",
        "return var;",
        "1 = 2;",
        "API = 1;",
        "API.messages({});",
        "return API.a.b(1, 2);",
        "delete 1;",
        "return a ? b : c;",
        "return 'a;",
        "return 'a\nb';",
        'return "a\u2028b";',
        "return 'a\u2029b';",
        "return\u20281;",
        "return 'a\x00b';",
        "return 12abc;",
        "return " + "9" * 30 + ";",
        "return #;",
        "@",
        "return " + "(" * 5000,
        "-" * 5000,
        "/* open",
    ],
)
def test_a_malformed_program_does_not_compile(code: str) -> None:
    with pytest.raises(CompileError, match=r"^Unable to compile code: .* in line \d+$"):
        value(code)


def test_the_line_of_an_error_is_told() -> None:
    with pytest.raises(CompileError, match="unexpected '#' in line 3"):
        value("var a = 1;\n// two\nreturn #;")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("return a;", "Undefined variable a"),
        ("return 1 < 'a';", "Comparing values of different or unsupported types"),
        ("return 1 / 0;", "Division by zero"),
        ("return 1 % 0;", "Division by zero"),
        ("return 1 << 99;", "Shift out of range"),
        ("return [1].nosuch();", "Unknown method nosuch"),
        ("API.a.b(1);", "Parameters of an API call must be an object"),
        ("1[0] = 1;", "Cannot assign here"),
        ("while (true) {}", "Too many operations"),
        ("var a = [1]; while (true) { a = [a, a]; }", "Too many operations"),
        ("var s = 'x'; while (true) { s = s + s; }", "Too long string"),
        ("var n = 2; while (true) { n = n * n; }", "Number out of range"),
        ("return 1" + " + 1" * 3000 + ";", "Too deep nesting"),
        ("var a = []; while (true) { a = [a]; }", "Too deep nesting"),
    ],
)
def test_a_run_ends_with_a_reason(code: str, reason: str) -> None:
    with pytest.raises(RunError, match=f"^Runtime error occurred during code invocation: {reason}$"):
        value(code)


def test_the_26th_api_call_ends_the_run() -> None:
    made: list[str] = []

    def call(method: str, parameters: Mapping[str, Value]) -> Value:
        made.append(method)
        return 1

    assert execute("return [" + ",".join(["API.a.b()"] * 25) + "];", call) == [1] * 25
    made.clear()
    with pytest.raises(RunError, match="Too many API calls"):
        execute("return [" + ",".join(["API.a.b()"] * 26) + "];", call)
    assert len(made) == 25


def sending(text: str, *, ascii_only: bool = True) -> str:
    message = json.dumps({"peer_ids": [1, 2], "message": text, "random_id": 7}, ensure_ascii=ascii_only)
    return f"return [API.messages.send({message})];"


whole_letters = st.text(st.characters(exclude_categories=["Cs"]))


@given(whole_letters)
@example('"}),API.account.ban({"a":"')
@example("\\")
@example('\\"')
@example("*/ return 1; /*")
@example("\u2028\u2029\x00\x1f\x7f\ufeff")
@example("😀𝒳")
@example("'${x}'</script>%s%00{{a}}")
def test_any_text_in_a_json_literal_arrives_letter_for_letter(text: str) -> None:
    calls: list[tuple[str, Any]] = []
    execute(sending(text), lambda method, parameters: calls.append((method, parameters)))
    assert calls == [("messages.send", {"peer_ids": [1, 2], "message": text, "random_id": 7})]


def test_an_injection_into_an_unescaped_text_really_runs() -> None:
    """The reason for the sandbox's own evaluator: quoting that is wrong must show, not be forgiven."""
    calls: list[str] = []
    text = '"}),API.account.ban({"a":"'
    execute('return [API.messages.send({"message":"' + text + '"})];', lambda method, _: calls.append(method))
    assert calls == ["messages.send", "account.ban"]


@given(st.text(st.sampled_from("\u2028\u2029ab"), min_size=1).filter(lambda text: {*text} & {"\u2028", "\u2029"}))
def test_a_text_written_without_ascii_escapes_fails_the_compile_on_line_separators(text: str) -> None:
    with pytest.raises(CompileError):
        execute(sending(text, ascii_only=False), echo)


@given(st.text(st.sampled_from("aAPI.send({[()]})\"'\\;:,=+-*/&|<>!@ 01\n\u2028 varifwhilereturn"), max_size=60))
def test_no_program_ends_in_anything_but_a_value_or_a_named_error(code: str) -> None:
    try:
        execute(code, echo)
    except (CompileError, RunError):
        pass
