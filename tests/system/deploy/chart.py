"""The Helm chart as Helm itself renders it."""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any

import helm_python as helm
import yaml

from examples import HELM_CHART
from tests.system.deploy.test_compose import COMPOSE

VALUES: dict[str, Any] = yaml.safe_load((HELM_CHART / "values.yaml").read_text())
RELEASE = "ada"

EVERY_PROCESS: Mapping[str, Any] = {
    "secret": {"keys": [name for name in COMPOSE["secrets"] if name != "redis_password"]},
    "processes": {name: {"replicas": 1} for name in VALUES["processes"]},
}
"""Values with which each process runs once and reads all its secrets."""


def rendered(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the manifests for these values. Raises helm.HelmError."""
    return deepcopy(_manifests(json.dumps(values)))


def notes(values: Mapping[str, Any]) -> str:
    """Return what Helm prints after an installation with these values."""
    return next(text for name, text in _texts(json.dumps(values)).items() if name.endswith("NOTES.txt"))


@cache
def _manifests(values: str) -> list[dict[str, Any]]:
    texts = (text for name, text in _texts(values).items() if name.endswith(".yaml"))
    return [found for text in texts for found in yaml.safe_load_all(text) if found]


@cache
def _texts(values: str) -> Mapping[str, str]:
    """Return the files of a release by their names. `values`: as JSON; most tests ask for the same."""
    with helm.Chart.load(str(HELM_CHART)) as chart:
        texts: Mapping[str, str] = chart.render(json.loads(values), name=RELEASE, namespace="mail")
    return texts


def deployments(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the Deployments by the names of their processes."""
    found = (manifest for manifest in rendered(values) if manifest["kind"] == "Deployment")
    return {one["metadata"]["name"].removeprefix(f"{RELEASE}-"): one for one in found}


def pod_of(deployment: Mapping[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return pod


def container_of(deployment: Mapping[str, Any]) -> dict[str, Any]:
    container: dict[str, Any]
    [container] = pod_of(deployment)["containers"]
    return container


def environment_of(container: Mapping[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"]}


def commands_of_probes(container: Mapping[str, Any]) -> Iterator[list[str]]:
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        if "exec" in container.get(kind, {}):
            yield container[kind]["exec"]["command"]
