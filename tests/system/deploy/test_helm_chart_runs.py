"""The processes of the Helm chart, started outside containers as their manifests say: probes and their end."""

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from cli.processes.embedded_valkey import free_port
from tests.support.forked import run_ada
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess
from tests.system.deploy.chart import EVERY_PROCESS, container_of, deployments, environment_of
from tests.system.deploy.test_compose_starts import split, start_sandbox


def on_this_machine(text: str, folder: Path, port: int) -> str:
    """Return a value of the environment with the paths and the port of a test in place of those of a container."""
    places = {"/run/secrets/ada": str(folder / "secrets"), "0.0.0.0:8080": f"127.0.0.1:{port}"}
    return next((text.replace(old, new) for old, new in places.items() if old in text), text)


class Pod:
    """A container of the chart as a process."""

    def __init__(self, container: Mapping[str, Any], settings: Mapping[str, str], folder: Path) -> None:
        self.container = container
        self.port = free_port()
        own = {name: on_this_machine(text, folder, self.port) for name, text in environment_of(container).items()}
        data = folder / "-".join(container["args"])
        data.mkdir(mode=0o770)
        self.environment = {**settings, **own, "ADA_DATA": str(data)}
        self.process = AdaProcess(tuple(container["args"]), self.environment, data.with_suffix(".log"))

    def passes(self, probe: str) -> bool:
        """Return whether a probe passes."""
        how = self.container[probe]
        if "exec" in how:
            _, _, module, *words = how["exec"]["command"]
            assert module == "cli"
            return run_ada(words, {**os.environ, **self.environment}, self.process.log.parent).returncode == 0
        with urlopen(f"http://127.0.0.1:{self.port}{how['httpGet']['path']}") as response:
            return bool(response.status == 200)


async def test_processes_start_pass_their_probes_and_end_when_they_are_asked_to(
    own_server: Server, tmp_path: Path
) -> None:
    sandbox = await start_sandbox(tmp_path)
    settings, secrets = split(sandbox["environment"], own_server.url)
    (tmp_path / "secrets").mkdir()
    for key in EVERY_PROCESS["secret"]["keys"]:
        (tmp_path / "secrets" / key).write_text(secrets.get(key, ""))
    found = deployments(EVERY_PROCESS)
    pods = [
        Pod(container_of(found[name]), settings, tmp_path) for name in ("serve", "sms", "bot-sms", "scenarios", "jobs")
    ]
    await asyncio.gather(*(pod.process.ready() for pod in pods))
    for pod in pods:
        for probe in ("livenessProbe", "readinessProbe"):
            await until(partial(pod.passes, probe), within=60, every=0.5)
        pod.process.terminate()
    ends = [await pod.process.wait(within=60) for pod in pods]
    assert ends == [0] * len(pods), [pod.process.output for pod in pods]
