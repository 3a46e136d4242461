"""The key of the tokens of sign-ins, with real processes: lost, given back, changed; and the verb `./ada sign-in`."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from cli.main import main
from cli.processes import embedded_valkey
from core.jobs import JobId, Jobs, JobState
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from providers.sign_in import SignInExpired, Tokens, Vault
from providers.sign_in.stored import keys_in_use, new_key, tokens_key
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess

ANNA = ("default", "vacancies", "42")
JOB = JobId("default", "check", "42")
JOBS = """
from datetime import timedelta
from jobs import Iteration, Job, Schedule

class Check(Job):
    name = "check"
    schedule = Schedule(timedelta(seconds=1))

    async def run(self, iteration: Iteration) -> None:
        await iteration.access_token("vacancies")
"""
SERVICES = "vacancies: {authorize_url: https://a.example, token_url: https://t.example, client_id: ada}"
WRONG_SETTINGS = 2

Ada = Callable[..., Awaitable[tuple[int, str]]]


class Installation:
    """Processes with one data directory on one server."""

    def __init__(self, folder: Path, server: Server, store: Store) -> None:
        self.folder = folder
        self.store = store
        self.jobs = Jobs(store)
        self.key = folder / "data" / "sign_in" / "secret_key"
        (folder / "check.py").write_text(JOBS)
        (folder / "services.yaml").write_text(SERVICES)
        self.environment = {
            "ADA_REDIS_URL": server.url,
            "ADA_DATA": str(folder / "data"),
            "ADA_HTTP": "127.0.0.1:0",
            "ADA_SIGN_IN": str(folder / "services.yaml"),
            "ADA_JOBS": str(folder / "check.py"),
        }
        self._processes: list[AdaProcess] = []

    def start(self, verb: str) -> AdaProcess:
        process = AdaProcess((verb,), self.environment, self.folder / f"{verb}-{len(self._processes)}.log")
        self._processes.append(process)
        return process

    def close(self) -> None:
        for process in self._processes:
            process.kill()

    def tokens(self, *keys: str) -> Tokens:
        return Tokens(self.store, Vault(keys or [self.key.read_text()]), {})

    async def went_on(self) -> None:
        """Wait until the job has ended two more iterations."""
        ended = (await self.jobs.find(JOB)).record.iteration

        async def are_more() -> bool:
            return (await self.jobs.find(JOB)).record.iteration >= ended + 2

        await until(are_more, within=60)


@pytest.fixture
async def installation(server: Server, tmp_path: Path) -> AsyncIterator[Installation]:
    store = await Store.open(server.url)
    await sign_layout(store)
    installation = Installation(tmp_path, server, store)
    yield installation
    installation.close()
    await store.close()


@pytest.fixture
def ada(installation: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ada:
    """`await ada("sign-in", "list", "42")`: exit code and output of a command."""

    async def run(*args: str) -> tuple[int, str]:
        for name, value in installation.environment.items():
            monkeypatch.setenv(name, value)
        code = await asyncio.to_thread(main, list(args))
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return run


async def signed_in(ada: Ada, installation: Installation) -> None:
    """Anna has signed in; the key was made."""
    code, address = await ada("sign-in", "begin", "42", "vacancies")
    assert (code, address.startswith("http://127.0.0.1:0/v1/sign-in/link/")) == (0, True)
    await installation.tokens().write(*ANNA, {"access_token": "x", "expires_in": 36_000})


async def signed_in_at(url: str) -> None:
    """Anna has signed in, with a key that is lost since."""
    store = await Store.open(url)
    await sign_layout(store)
    await Tokens(store, Vault([new_key()]), {}).write(*ANNA, {"access_token": "x"})
    await store.close()


async def test_a_lost_key_is_a_set_up_error_and_jobs_go_on_when_it_is_back(
    installation: Installation, ada: Ada
) -> None:
    await signed_in(ada, installation)
    process = installation.start("jobs")
    await process.ready()
    await installation.jobs.start(JOB)
    await installation.went_on()
    process.terminate()
    assert await process.wait() == 0
    lost = installation.key.rename(installation.folder / "lost")
    for verb in ("jobs", "serve"):
        process = installation.start(verb)
        assert await process.wait(60) == WRONG_SETTINGS
        assert "ADA_SECRET_KEY" in process.output
        assert "Traceback" not in process.output
    assert not installation.key.exists(), "no new key was made"
    assert (await installation.jobs.find(JOB)).record.state is JobState.RUNNING
    lost.rename(installation.key)
    await installation.start("jobs").ready()
    await installation.went_on()


async def test_doctor_and_audit_notice_a_lost_key(installation: Installation, ada: Ada) -> None:
    async def found() -> tuple[list[bool], int, str]:
        lines = [json.loads(line) for line in (await ada("doctor", "--json"))[1].splitlines()]
        code, text = await ada("audit")
        return [line["is_good"] for line in lines if line["what"] == "sign-in"], code, text

    good, code, _ = await found()
    assert (good, code, installation.key.exists()) == ([True], 0, False), "doctor makes no key"
    await signed_in(ada, installation)
    assert (await found())[:2] == ([True], 0)
    installation.key.rename(installation.folder / "lost")
    good, code, text = await found()
    assert (good, code) == ([False], 1)
    assert "VIOLATED  I25 sign-in:{0}:keys" in text
    installation.environment["ADA_SECRET_KEY"] = new_key()
    assert (await found())[:2] == ([False], 1), "another key"
    installation.environment["ADA_SECRET_KEY"] = (installation.folder / "lost").read_text()
    assert (await found())[:2] == ([True], 0)
    await installation.store.command("HSET", tokens_key(installation.store, "default", "42"), "vacancies", "damaged")
    good, code, text = await found()
    assert (good, code) == ([True], 1)
    assert "I25 sign-in:{0}:tokens:default:42: vacancies" in text


async def test_after_a_rotation_the_old_key_is_not_needed(installation: Installation, ada: Ada) -> None:
    await signed_in(ada, installation)
    old, new = installation.key.read_text(), new_key()
    installation.environment["ADA_SECRET_KEY"] = new
    assert (await ada("sign-in", "rotate"))[0] == WRONG_SETTINGS, "without the old key nothing can be read"
    installation.environment["ADA_SECRET_KEY"] = f"{new},{old}"
    await installation.tokens(old).write("default", "vacancies", "43", {"access_token": "y"})
    assert await ada("sign-in", "rotate") == (0, "encrypted with the first key: 2\n")
    installation.environment["ADA_SECRET_KEY"] = new
    assert (await ada("audit"))[0] == 0
    assert await installation.tokens(new).access_token(*ANNA) == "x"
    with pytest.raises(SignInExpired):
        await Tokens(installation.store, Vault([new]), {}).access_token("default", "vacancies", "44")


async def test_without_a_rotation_the_old_key_is_still_needed(installation: Installation, ada: Ada) -> None:
    """Also if something was encrypted with the new key since."""
    await signed_in(ada, installation)
    old, new = installation.key.read_text(), new_key()
    await installation.tokens(new, old).write("default", "vacancies", "43", {"access_token": "y"})
    assert len(await keys_in_use(installation.store)) == 2
    installation.environment["ADA_SECRET_KEY"] = new
    code, text = await ada("sign-in", "begin", "42", "vacancies")
    assert (code, "ADA_SECRET_KEY" in text) == (WRONG_SETTINGS, True)


async def test_after_a_reset_everybody_signs_in_again_with_a_new_key(installation: Installation, ada: Ada) -> None:
    await signed_in(ada, installation)
    installation.key.unlink()
    assert (await ada("sign-in", "begin", "42", "vacancies"))[0] == WRONG_SETTINGS
    assert await ada("sign-in", "reset", "--yes") == (0, "signed out: 1\n")
    await signed_in(ada, installation)
    assert (await ada("audit"))[0] == 0
    assert (await ada("sign-in", "list", "42")) == (0, "vacancies\n")


async def test_everybody_is_signed_out_while_the_embedded_server_does_not_run(
    installation: Installation, ada: Ada
) -> None:
    """Without the key `./ada up` does not start, and its server neither."""
    directory = installation.folder / "data" / "valkey"
    del installation.environment["ADA_REDIS_URL"]
    embedded = embedded_valkey.prepare(directory)
    process = subprocess.Popen(embedded.command(), cwd=directory, stdout=subprocess.DEVNULL)
    await until(lambda: embedded_valkey.running_url(directory) is not None)
    await signed_in_at(embedded.url)
    process.terminate()
    process.wait(20)
    assert await ada("sign-in", "reset", "--yes") == (0, "signed out: 1\n")
    assert embedded_valkey.running_url(directory) is None, "it was stopped again"


async def test_a_user_is_listed_and_signed_out(installation: Installation, ada: Ada) -> None:
    assert await ada("sign-in", "list", "42") == (0, "not signed in\n")
    await signed_in(ada, installation)
    assert await ada("sign-in", "list", "42", "--json") == (0, '{"services": ["vacancies"]}\n')
    assert await ada("sign-in", "out", "42", "vacancies") == (0, "42 is signed out of vacancies\n")
    code, text = await ada("sign-in", "out", "42", "vacancies")
    assert (code, "not signed in" in text) == (1, True)
