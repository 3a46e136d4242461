"""The commands for the directory, through a running API: output, `--json`, exit codes."""

import asyncio
import io
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from cli.main import main
from core.directory.importing.journal import Journal
from tests.delivery.conftest import ADMIN, Api, Couriers
from tests.support.stack import PaidCourier

Ada = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def ada(api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ada:
    """`await ada("user", "list")`: exit code, stdout and stderr of a command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADA_HTTP", api.url.removeprefix("http://"))
    monkeypatch.setenv("ADA_API_KEY", ADMIN)

    async def run(*args: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, list(args))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


async def result(ada: Ada, *args: str) -> list[Any]:
    """The JSON lines of a command that works."""
    code, out, err = await ada(*args, "--json")
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


async def test_a_follow_up_asks_the_question_of_its_delivery_again_unless_another_is_given(ada: Ada, api: Api) -> None:
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%FT%TZ}"
    question = ("--ask", "Go=20|Stay", "--visible", "hidden", "--need", "2,30m", "--until", tomorrow)
    to = ("--to", "1=telegram:100001,sms:+79990000001", "--channel", "telegram")
    (first,) = await result(ada, "send", *to, "--text", "Who goes?", *question)
    (plain,) = await result(ada, "send", *to, "--text", "Nothing is asked")

    async def asked(of: str, *more: str) -> dict[str, Any] | None:
        (made,) = await result(ada, "send", "--follow-up", of, "--channel", "sms", *more)
        found = (await api.call("GET", f"/v1/deliveries/{made['id']}")).json.get("answer")
        return found and {name: value for name, value in found.items() if name not in ("locale", "late", "change")}

    options = [{"key": "1", "text": "Go", "places": 20}, {"key": "2", "text": "Stay"}]
    again = {"kind": "choice", "options": options, "until": None, "visible": "hidden", "need": 2, "wave": "PT30M"}
    assert await asked(first["id"]) == again
    assert await asked(first["id"], "--text", "Please", "--remind", "12h") == again | {
        "remind": {"after": "PT12H", "every": "PT12H", "most": 1}
    }
    assert (await asked(first["id"], "--ask-for", "number") or {})["kind"] == "number"
    (final,) = await result(
        ada, "send", "--to", "telegram:100001", "--text", "x", "--confirm", "--final", "--late", "count"
    )
    terms = (await api.call("GET", f"/v1/deliveries/{final['id']}")).json["answer"]
    assert (terms["change"], terms["late"]) == (False, "count")
    assert await asked(plain["id"]) is None
    for option in (("--remind", "12h"), ("--final",), ("--late", "count")):
        code, _, said = await ada("send", "--follow-up", plain["id"], "--channel", "sms", *option)
        assert (code, said.strip()) == (2, f"ada: {option[0]} belongs to --confirm, --ask or --ask-for")


async def test_guardians_are_named_listed_and_get_what_concerns_their_children(ada: Ada) -> None:
    for number, name in (("7", "Olga"), ("8", "Pavel")):
        await ada("user", "add", number, "--name", name, "--contact", f"telegram:10000{number}")
    await ada("user", "add", "1", "--guardian", "7", "--guardian", "8", "--blocked-guardian", "8")
    await ada("user", "add", "2", "--name", "Gleb")
    assert "guardians 7, 8 (blocked)" in (await ada("user", "show", "1"))[1]
    assert [one["id"] for one in await result(ada, "user", "list", "--guardian", "8")] == [1]
    code, _, said = await ada("user", "change", "2", "--guardian", "99")
    assert (code, "There is no person '99' that could be a guardian" in said) == (2, True), said
    _, out, _ = await ada(
        "send", "--audience", "guardians", "--to", "1", "--to", "2", "--text", "x", "--channel", "telegram"
    )
    assert out.splitlines()[1:] == [
        "  Pavel (8) is blocked as a guardian of 1, and gets nothing",
        "  Gleb (2) has no guardian who gets it",
    ]
    (shown,) = await result(ada, "show", out.split()[0])
    named = [
        {"child": 1, "why": "guardian_blocked", "guardian": "8", "name": "Pavel"},
        {"child": 2, "why": "no_guardian", "name": "Gleb"},
    ]
    assert (shown["uninformed"], shown["recipients"][0]["children"]) == (named, [{"id": 1, "name": None}])
    await ada("user", "change", "1", "--guardian", "", "--blocked-guardian", "")
    assert "guardians" not in (await ada("user", "show", "1"))[1]


async def test_people_are_added_listed_changed_and_removed(ada: Ada) -> None:
    code, out, _ = await ada("user", "add", "1", "--name", "Анна", "--role", "trainer", "--contact", "telegram:100001")
    assert (code, out) == (0, "added 1  Анна  trainer\n")
    assert re.fullmatch(r"added p-[0-9a-f]{12}  Анна\n", (await ada("user", "add", "--name", "Анна"))[1])
    await ada("user", "remove", (await result(ada, "user", "list", "--name", "Анна"))[1]["id"])
    await ada("user", "add", "u2", "--email", "two@example.org", "--opt-out", "vk")
    assert [user["id"] for user in await result(ada, "user", "list")] == [1, "u2"]
    assert [user["id"] for user in await result(ada, "user", "list", "--contact", "telegram:100001")] == [1]
    assert await result(ada, "user", "change", "1", "--name", "", "--contact", "sms:9991112233") == [
        {"id": 1, "name": None, "email": None, "role": "trainer", "locale": None,
         "contacts": {"sms": ["+79991112233"]}, "opt_out": [], "blocked": False}
    ]  # fmt: skip
    shown = (await ada("user", "show", "1"))[1]
    assert "sms:+79991112233" in shown
    assert await ada("user", "remove", "1") == (0, "removed 1\n", "")
    code, _, err = await ada("user", "show", "1")
    assert (code, "USER_NOT_FOUND" in err) == (1, True)


async def test_a_person_is_named_by_its_external_id_unless_another_one_has_that_id(ada: Ada, api: Api) -> None:
    for person in ({"id": 1, "external_ids": ["1c:42", "1c:43"]}, {"id": "1c:43"}):
        assert (await api.call("POST", "/v1/users", person)).status == 201
    assert await ada("user", "change", "1c:42", "--name", "Анна") == (0, "changed 1  Анна  1c:42  1c:43\n", "")
    assert [user["id"] for user in await result(ada, "user", "show", "1c:43")] == ["1c:43"]
    assert (await ada("user", "show", "1c:44"))[0] == 1
    assert (await ada("user", "list"))[1].splitlines()[0] == "1  Анна  1c:42  1c:43"
    assert (await api.call("PATCH", "/v1/users/1", {"blocked": True})).status == 200
    assert (await ada("user", "list"))[1].splitlines()[0] == "1  Анна  blocked  1c:42  1c:43"
    shown = (await ada("user", "show", "1"))[1].splitlines()
    assert {"blocked   gets nothing, cannot sign in or send", "known as  1c:42, 1c:43"} <= {*shown}


async def test_a_preview_and_a_warning_name_the_parts_of_an_sms(ada: Ada, courier: Couriers) -> None:
    await courier("sms", kind=PaidCourier)
    send = ("send", "--to", "sms:+79990000001", "--to", "2=sms:89990000001", "--channel", "sms", "--text", "Я" * 100)
    seen = "people 1  duplicates 1\n  sms  people 1  2 SMS each, 2 in all, each 4.20 ₽\nnothing was sent\n"
    assert await ada(*send, "--preview") == (0, seen, "")
    for option in (["--wait"], ["--every", "every Monday 8:00"]):
        assert (await ada(*send, "--preview", *option))[0] == 2
    code, _, warning = await ada(*send)
    assert (code, "an SMS of this text has 2 parts" in warning) == (0, True)


async def test_single_contacts_are_added_and_removed(ada: Ada) -> None:
    await ada("user", "add", "1", "--contact", "telegram:@anna")
    assert (await ada("contact", "add", "1", "sms:8 (999) 111-22-33"))[1] == "added sms:+79991112233 to 1\n"
    assert (await ada("contact", "list", "1"))[1].splitlines() == ["telegram:@anna", "sms:+79991112233"]
    assert (await ada("contact", "remove", "1", "telegram:@Anna"))[0] == 0
    assert await result(ada, "contact", "list", "1") == [{"user": 1, "channel": "sms", "address": "+79991112233"}]


async def test_groups_supergroups_and_owners_are_managed(ada: Ada) -> None:
    for user in ("1", "2"):
        await ada("user", "add", user)
    assert (await ada("group", "add", "ИВТ-21", "--title", "Группа", "--member", "1"))[1] == "added ИВТ-21  Группа\n"
    await ada("group", "add", "b", "--virtual")
    assert (await ada("group", "add-member", "ИВТ-21", "2"))[1] == "added 2\n"
    assert [user["id"] for user in await result(ada, "group", "members", "ИВТ-21")] == [1, 2]
    await ada("group", "remove-member", "ИВТ-21", "1")
    assert [user["id"] for user in await result(ada, "user", "list", "--group", "ИВТ-21")] == [2]
    assert (await result(ada, "group", "change", "b", "--not-virtual"))[0]["virtual"] is False
    assert (await ada("supergroup", "add", "1 курс", "--group", "ИВТ-21"))[1] == "added 1 курс: ИВТ-21\n"
    await ada("supergroup", "add-group", "1 курс", "b")
    assert set((await result(ada, "supergroup", "show", "1 курс"))[0]["groups"]) == {"ИВТ-21", "b"}
    code, _, err = await ada("owner", "add", "1", "supergroup:1 курс")
    assert (code, "GROUP_NOT_OWNED" in err) == (1, True)
    for owned in ("group:ИВТ-21", "group:b", "supergroup:1 курс"):
        assert (await ada("owner", "add", "1", owned))[0] == 0
    assert len((await ada("owner", "list", "1"))[1].splitlines()) == 3
    await ada("owner", "remove", "1", "group:b")
    assert (await ada("owner", "list", "1"))[1] == "group:ИВТ-21\n"
    for verb in (("supergroup", "remove", "1 курс"), ("group", "remove", "b")):
        assert (await ada(*verb))[0] == 0
    assert (await ada("supergroup", "list"))[1] == ""
    assert [group["id"] for group in await result(ada, "group", "list")] == ["ИВТ-21"]


async def test_a_long_list_is_read_to_its_end(ada: Ada, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id\n" + "".join(f"{n}\n" for n in range(1200)))
    assert (await ada("import", "users", "p.csv"))[1] == "1200 created, 0 updated, 0 unchanged\n"
    assert len(await result(ada, "user", "list")) == 1200


async def test_a_file_is_checked_imported_and_its_errors_are_shown_by_row(ada: Ada, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("id,name\n1,Анна\n2,Пётр\n")
    (tmp_path / "bad.csv").write_text("id,email\n1,nonsense\n")
    checked = (await ada("import", "users", "good.csv", "--dry-run"))[1]
    assert checked.splitlines() == [
        "row 2: 1 is new",
        "    name Анна",
        "row 3: 2 is new",
        "    name Пётр",
        "2 created, 0 updated, 0 unchanged (only checked: nothing was written)",
    ]
    assert await result(ada, "user", "list") == []
    assert await result(ada, "import", "users", "good.csv") == [
        {"created": 2, "updated": 0, "unchanged": 0, "dry_run": False, "changes": [], "more_changes": 0}
    ]
    (tmp_path / "new.csv").write_text("id,name\n1,\n2,Пётр\n")
    checked = (await ada("import", "users", "new.csv", "--dry-run"))[1]
    assert checked.splitlines() == [
        "row 2: 1",
        "    name: Анна → (none)",
        "0 created, 1 updated, 1 unchanged (only checked: nothing was written)",
    ]
    code, out, err = await ada("import", "users", "bad.csv")
    assert (code, out) == (1, "")
    assert err.startswith("row 2, email: ")
    assert "EMAIL_MALFORMED" in err
    assert "Nothing was imported: 1 error. The first: row 2" in err
    code, out, err = await ada("import", "users", "bad.csv", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out)["errors"][0]["row"] == 2


async def test_the_right_rows_are_imported_by_named_columns_and_the_wrong_ones_written(
    ada: Ada, tmp_path: Path
) -> None:
    (tmp_path / "list.csv").write_text("Кто;Куда;Заметка\nАнна;8 (999) 111-22-01;=1\nБорис;нет;x\n")
    options = ("import", "users", "list.csv", "--columns", "name,contacts.sms,-", "--wrong-rows", "wrong.csv")
    assert (await ada(*options, "--dry-run"))[1].splitlines()[-1].startswith("1 created, 0 updated")
    assert await result(ada, "user", "list") == []
    code, out, err = await ada(*options)
    assert (code, out) == (1, "1 created, 0 updated, 0 unchanged\n")
    assert err == "ada: 1 wrong row left out: see wrong.csv\n"
    header, row = (tmp_path / "wrong.csv").read_text("utf-8-sig").splitlines()
    assert (header, row.startswith("Борис;нет;x;")) == ("Кто;Куда;Заметка;Error", True)
    corrected = (tmp_path / "wrong.csv").read_text("utf-8-sig").replace(";нет;", ";89991112202;")
    (tmp_path / "list.csv").write_text(corrected)
    again = [*options[:4], "name,contacts.sms,-,-", *options[5:]]
    assert await ada(*again) == (0, "1 created, 0 updated, 0 unchanged\n", "")
    assert sorted(user["name"] for user in await result(ada, "user", "list")) == ["Анна", "Борис"]
    assert (await ada(*options[:3], "--wrong-rows", "-"))[0] == 2
    (tmp_path / "list.csv").write_text("name,nonsense\nАнна,1\n")
    code, out, err = await ada("import", "users", "list.csv", "--wrong-rows", "wrong.csv")
    assert (code, out, "COLUMN_UNKNOWN" in err) == (1, "", True)
    assert "Кто" in (tmp_path / "wrong.csv").read_text("utf-8-sig"), "a refused file leaves what was written before"


async def test_unknown_groups_are_one_finding_and_are_created_when_asked(ada: Ada, tmp_path: Path) -> None:
    rows = "".join(f"{n};{'8А' if n % 2 else f'g{n}'}\n" for n in range(240))
    (tmp_path / "people.csv").write_text(f"id;groups\n{rows}")
    code, out, err = await ada("import", "users", "people.csv")
    assert (code, out, err.count("8А")) == (1, "", 1)
    assert "unknown groups (GROUP_NOT_FOUND): g0, 8А, g2, " in err.splitlines()[0]
    assert err.splitlines()[0].endswith("; --create-groups creates them")
    assert (await ada("import", "users", "people.csv", "--create-groups", "--dry-run"))[0] == 2
    assert await result(ada, "group", "list") == []
    code, out, err = await ada("import", "users", "people.csv", "--create-groups")
    assert (code, out) == (0, "240 created, 0 updated, 0 unchanged\n"), err
    assert len(await result(ada, "group", "list")) == 121
    assert len(await result(ada, "group", "members", "8А")) == 120


async def test_a_sheet_of_a_workbook_is_imported(ada: Ada, tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["about", "the list"])
    people = book.create_sheet("Люди")
    for row in (["id", "name"], [1, "Анна"]):
        people.append(row)
    book.save(tmp_path / "people.xlsx")
    code, _, err = await ada("import", "users", "people.xlsx")
    assert (code, "several sheets" in err and "Люди" in err) == (1, True), err
    assert (await ada("import", "users", "people.xlsx", "--sheet", "Люди"))[1] == "1 created, 0 updated, 0 unchanged\n"
    assert [user["name"] for user in await result(ada, "user", "list")] == ["Анна"]


@pytest.mark.parametrize(
    ("args", "end"),
    [
        (("import", "users", "/dev/zero"), "/dev/zero has more than 32 MiB"),
        (("import", "users", "-"), "standard input has more than 32 MiB"),
        (("send", "--to", "1=sms:+79991112233", "--text", "-"), "standard input has more than 64 KiB"),
    ],
)
async def test_a_file_without_an_end_is_refused_in_one_sentence(
    ada: Ada, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], end: str
) -> None:
    with subprocess.Popen(["yes", "1;Анна"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(endless.stdout))
        code, out, err = await ada(*args)
        endless.kill()
    assert (code, out, err) == (2, "", f"ada: {end}, and no more is accepted\n")


async def test_the_directory_is_exported_to_a_file_that_imports_again(ada: Ada, tmp_path: Path) -> None:
    await ada("user", "add", "1", "--name", "Анна", "--contact", "sms:+79991112233")
    assert (await ada("export", "users", "people.csv"))[:2] == (0, "wrote 1 row to people.csv\n")
    assert (await ada("import", "users", "people.csv", "--dry-run"))[1].startswith("0 created, 0 updated, 1 unchanged")
    assert stat.S_IMODE((tmp_path / "people.csv").stat().st_mode) == 0o600
    assert await result(ada, "export", "users", "people.csv", "--excel") == [{"file": "people.csv", "rows": 1}]
    assert (tmp_path / "people.csv").read_bytes().startswith("\ufeffid;".encode())


async def test_an_export_that_fails_leaves_the_file_as_it_was(ada: Ada, tmp_path: Path) -> None:
    (tmp_path / "outcomes.csv").write_text("before")
    code, out, err = await ada("export", "outcomes", f"0.1.{'1' * 19}", "outcomes.csv")
    assert (code, out, "HISTORY_NOT_FOUND" in err) == (1, "", True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("outcomes.csv", "before")]
    assert (await ada("export", "groups", str(tmp_path)))[0] == 2


def test_a_command_whose_input_stays_silent_says_on_the_terminal_that_it_waits() -> None:
    controller, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", "from cli.files import read_input; print(read_input('-', 9))"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal,
    ) as reader, os.fdopen(controller, "rb", closefd=True) as shown:  # fmt: skip
        assert reader.stdin
        assert reader.stdout
        assert shown.readline() == b"ada: waiting for standard input; Ctrl-D ends it\r\n"
        reader.stdin.write(b"id")
        reader.stdin.close()
        assert reader.stdout.read() == b"b'id'\n"
    os.close(terminal)


async def test_files_are_attached_by_their_addresses(ada: Ada, api: Api) -> None:
    send = ("send", "--to", "1=sms:+79991112233", "--file")
    (sent,) = await result(ada, *send, "https://example.org/menu.PDF?day=1", "--file", "http://example.org/a.png")
    history = (await api.call("GET", f"/v1/deliveries/{sent['id']}")).json
    assert history["content"]["attachments"] == [
        {"type": "document", "url": "https://example.org/menu.PDF?day=1"},
        {"type": "photo", "url": "http://example.org/a.png"},
    ]
    assert (await ada("send", "--to", "1"))[::2] == (2, "ada: send what? Give --text, or --file\n")


async def test_a_running_import_is_named_and_ends_with_exit_code_one(ada: Ada, api: Api, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("id\n1\n")
    other = Journal(api.store, "default")
    await other.begin("users", 1)
    code, _, err = await ada("import", "users", "good.csv")
    assert (code, "IMPORT_RUNNING" in err) == (1, True)
    await other.abort()


@pytest.mark.parametrize(
    "args",
    [
        ("user",),
        ("user", "change", "1"),
        ("user", "add", "1", "--contact", "telegram"),
        ("user", "add", "1", "--role", "dean"),
        ("contact", "add", "1", "nonsense"),
        ("group", "change", "g"),
        ("owner", "add", "1", "team:x"),
        ("import", "people", "f.csv"),
        ("import", "users", "no-such-file.csv"),
    ],
)
async def test_wrong_usage_has_exit_code_two_and_a_message(ada: Ada, args: tuple[str, ...]) -> None:
    code, out, err = await ada(*args)
    assert (code, out) == (2, "")
    assert err


async def test_templates_are_added_listed_shown_and_deleted(ada: Ada) -> None:
    (added,) = await result(ada, "templates", "add", "Отмена", "--text", "Пары не будет", "--channel", "sms")
    assert (added["title"], added["message"]) == ("Отмена", {"text": "Пары не будет", "channels": ["sms"]})
    assert (await ada("templates", "list"))[1] == f"{added['id']}  Отмена\n"
    assert "Пары не будет" in (await ada("templates", "show", added["id"]))[1]
    assert await ada("templates", "delete", added["id"]) == (0, f"deleted {added['id']}\n", "")
    code, _, err = await ada("templates", "show", added["id"])
    assert (code, "there is no template" in err) == (1, True)
