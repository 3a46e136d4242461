"""VKScript: literals and API calls work, everything else does not compile, and no text breaks out of its string."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.vkscript import CompileError, RunError, Value, execute


def no_call(method: str, parameters: Mapping[str, Value]) -> Value:
    raise AssertionError(f"{method} was called with {parameters}")


def echo(method: str, parameters: Mapping[str, Value]) -> Value:
    return {"method": method, **parameters}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("return 1;", 1),
        (" return\n -1.5e1 ;\r\n", -15.0),
        ("return null;", None),
        ("return [];", []),
        (
            'return [1, "two", [3], {"a": 4, "b": null}, true, false];',
            [1, "two", [3], {"a": 4, "b": None}, True, False],
        ),
        ("return {a: {b: 1}};", {"a": {"b": 1}}),
        (r'return "it\"s \u0041\n\\\/";', 'it"s A\n\\/'),
        (r'return "\ud83d\ude00";', "😀"),
        (r'return "\ud83d";', "\ufffd"),
    ],
)
def test_literals(code: str, expected: Value) -> None:
    assert execute(code, no_call) == expected


def test_api_calls_take_an_object_and_return_the_result() -> None:
    code = 'return [API.users.get({"user_ids": [1, 2], name: "x"}), {"b": API.a.b()}];'
    assert execute(code, echo) == [
        {"method": "users.get", "user_ids": [1, 2], "name": "x"},
        {"b": {"method": "a.b"}},
    ]


def test_api_calls_are_made_in_the_order_of_the_code() -> None:
    calls: list[str] = []
    code = "return [API.a.a(), [API.b.b({x: API.c.c()})], API.d.d()];"
    execute(code, lambda method, _: calls.append(method))
    assert calls == ["a.a", "c.c", "b.b", "d.d"]


@pytest.mark.parametrize(
    "code",
    [
        "",
        "return;",
        "return 1",
        "return 1;;",
        "return 1;}",
        "return 1; return 2;",
        "return [1,];",
        "return [1",
        "return {a 1};",
        "return {1: 1};",
        "return (1);",
        "return 1 + 2;",
        "return !true;",
        "return undefined;",
        "return [1][0];",
        "return [1].length;",
        "return a;",
        "return return;",
        "var a = 1; return a;",
        "var a = API.a.b(); return 1;",
        "API.a.b();",
        "API.a.b(); return 1;",
        "if (true) { return 1; }",
        "while (true) {}",
        "function f() { return 1; }",
        "return API;",
        "return API.messages({});",
        "return API.a.b(1);",
        "return API.a.b({}, {});",
        "return API.a.b.c({});",
        "return API.a.b({})@.id;",
        "return 'single';",
        'return "a;',
        'return "a\nb";',
        r'return "\q";',
        r'return "\u12";',
        'return "a\u2028b";',
        'return "a\u2029b";',
        "return\u20281;",
        'return "a\x00b";',
        "return 12abc;",
        "return 1.2.3;",
        "return " + "9" * 30 + ";",
        "return #;",
        "@",
        "// a comment\nreturn 1;",
        "return " + "[" * 5000,
        "return " + "[" * 5000 + "]" * 5000 + ";",
        "-" * 5000,
    ],
)
def test_other_code_does_not_compile_and_makes_no_call(code: str) -> None:
    with pytest.raises(CompileError, match=r"^Unable to compile code: .* in line \d+$"):
        execute(code, no_call)


def test_a_compile_error_names_the_line() -> None:
    with pytest.raises(CompileError, match="unexpected '#' in line 3"):
        execute("return [\n1,\n#];", no_call)


def test_the_26th_api_call_ends_the_run() -> None:
    made: list[str] = []

    def call(method: str, parameters: Mapping[str, Value]) -> Value:
        made.append(method)
        return 1

    assert execute("return [" + ",".join(["API.a.b()"] * 25) + "];", call) == [1] * 25
    made.clear()
    with pytest.raises(RunError, match=r"^Runtime error occurred during code invocation: Too many API calls$"):
        execute("return [" + ",".join(["API.a.b()"] * 26) + "];", call)
    assert len(made) == 25


def send_code(text: str, *, ascii_only: bool = True) -> str:
    message = json.dumps({"peer_ids": [1, 2], "message": text, "random_id": 7}, ensure_ascii=ascii_only)
    return f"return [API.messages.send({message})];"


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example('"}),API.account.ban({"a":"')
@example("\\")
@example('\\"')
@example("*/ return 1; /*")
@example("\u2028\u2029\x00\x1f\x7f\ufeff")
@example("😀𝒳")
@example("'${x}'</script>%s%00{{a}}")
def test_any_text_in_a_json_literal_is_received_unchanged(text: str) -> None:
    calls: list[tuple[str, Any]] = []
    execute(send_code(text), lambda method, parameters: calls.append((method, parameters)))
    assert calls == [("messages.send", {"peer_ids": [1, 2], "message": text, "random_id": 7})]


def test_an_injection_through_an_unescaped_text_is_executed() -> None:
    """Wrong quoting must become visible in the sandbox, so the code is really parsed."""
    calls: list[str] = []
    text = '"}),API.account.ban({"a":"'
    execute('return [API.messages.send({"message":"' + text + '"})];', lambda method, _: calls.append(method))
    assert calls == ["messages.send", "account.ban"]


@given(st.text(st.sampled_from("\u2028\u2029ab"), min_size=1).filter(lambda text: {*text} & {"\u2028", "\u2029"}))
def test_an_unescaped_line_separator_does_not_compile(text: str) -> None:
    with pytest.raises(CompileError):
        execute(send_code(text, ascii_only=False), echo)


@given(st.text(st.sampled_from("aAPI.send({[()]})\"'\\;:,=+-*/&|<>!@ 01\n\u2028 varifwhilereturn"), max_size=60))
def test_every_code_ends_with_a_value_or_a_named_error(code: str) -> None:
    for whole in (code, f"return [{code}];"):
        try:
            execute(whole, echo)
        except (CompileError, RunError):
            pass
