"""The Helm chart: Helm and Kubernetes accept it, and it agrees with Ada's verbs, settings, secrets and image."""

import json
import re
import tomllib
from typing import Any

import helm_python as helm
import kubernetes_validate
import pytest
import yaml

from cli.commands.installation.jobs import _GRACE as GRACE_OF_JOBS
from cli.services.api import SHUTDOWN_TIMEOUT
from cli.settings.settings import common_names, courier_module, section_prefix, setting_names
from couriers.channel import channels, receiving
from delivery.routes import OPEN_ROUTES
from examples import HELM_CHART
from tests.support.paths import ROOT
from tests.system.deploy.chart import (
    EVERY_PROCESS,
    VALUES,
    commands_of_probes,
    container_of,
    deployments,
    environment_of,
    notes,
    pod_of,
    rendered,
)
from tests.system.deploy.test_compose import ADA_SERVICES, DOCKERFILE, SERVICES
from tests.system.guides.blocks import blocks_of

GUIDE = ROOT / "docs" / "kubernetes.md"
VOLUMES = {
    "config": {"configMap": {"name": "bots"}},
    "shared": {"persistentVolumeClaim": {"claimName": "shared"}},
    "processes": {
        **EVERY_PROCESS["processes"],
        "telegram": {"replicas": 1, "data": {"persistentVolumeClaim": {"claimName": "telegram"}}},
    },
}
FURTHER = {
    "image": {"repository": "registry.example.org/ada", "tag": "1", "pullSecrets": [{"name": "registry"}]},
    "processes": {"serve": {"replicas": 3, "settings": {"ADA_FILE_MB": "40"}, "resources": {}}},
}
OF_A_PACKAGE = {"replicas": 2, "args": ["courier", "pigeon"], "secrets": ["redis_url", "pigeon_token"]}


def values_of_the_guide() -> list[dict[str, Any]]:
    """The files with values in the guide, in their order."""
    return [yaml.safe_load(one.text) for one in blocks_of(GUIDE) if one.mark == "file"]


def every_set_of_values() -> list[dict[str, Any]]:
    return [{}, dict(EVERY_PROCESS), VOLUMES, FURTHER, {"processes": {"pigeon": OF_A_PACKAGE}}, *values_of_the_guide()]


def test_helm_finds_no_fault_in_the_chart() -> None:
    found: list[dict[str, Any]] = helm.lint(str(HELM_CHART))["messages"]
    assert [one["error"] for one in found] == ["icon is recommended"]


@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_kubernetes_knows_every_field_of_every_manifest(version: str) -> None:
    kinds = set()
    for values in every_set_of_values():
        for manifest in rendered(values):
            kubernetes_validate.validate(manifest, version, strict=True)
            kinds.add(manifest["kind"])
    assert kinds == {"Deployment", "Service", "PodDisruptionBudget"}


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    manifest = rendered({})[0]
    manifest["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readynessProbe"):
        kubernetes_validate.validate(manifest, "1.37", strict=True)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"processes": {"telegram": {"replicas": 2}}}, "/processes/telegram/replicas"),
        ({"processes": {"sms": {"replica": 2}}}, "'replica' not allowed"),
        ({"processes": {"pigeon": {"replicas": 1}}}, "missing properties 'args', 'secrets'"),
        ({"secret": {"keys": ["api_key"]}}, "'redis_url'"),
        ({"settings": {"ADA_FILE_MB": 40}}, "got number, want string"),
        ({"settings": {"ADA_DATA": "/tmp"}}, "ADA_DATA"),
        ({"settings": {"TZ": "UTC"}}, "TZ"),
    ],
)
def test_values_with_a_mistake_are_refused_with_its_place(values: dict[str, Any], fault: str) -> None:
    with pytest.raises(helm.HelmValuesError) as refused:
        rendered(values)
    assert fault in str(refused.value)


@pytest.mark.parametrize(("channel", "bot"), [(channel, one.process) for channel, one in receiving().items()])
def test_a_bot_without_a_process_that_answers_and_a_courier_is_refused(channel: str, bot: str) -> None:
    names = [f"bot-{bot}", "scenarios", channel]
    for missing in ("scenarios", channel):
        values = {"processes": {name: {"replicas": 1} for name in names if name != missing}}
        with pytest.raises(helm.HelmError, match=f"bot-{bot} is of no use without {missing}: set"):
            rendered(values)
    assert deployments({"processes": {name: {"replicas": 1} for name in names}}).keys() == {"serve", *names}


def test_every_setting_of_a_process_exists_in_the_code() -> None:
    sections = [(courier_module(channel).Settings, section_prefix(channel)) for channel in channels()]
    known = {*common_names(), *(name for kind, prefix in sections for name in setting_names(kind, prefix))}
    for values in every_set_of_values():
        for deployment in deployments(values).values():
            names = {one.removesuffix("_FILE") for one in environment_of(container_of(deployment))}
            assert {one for one in names if not one.startswith("ADA_PIGEON_")} <= known


def test_without_values_the_api_alone_runs_twice() -> None:
    [(name, deployment)] = deployments({}).items()
    assert (name, deployment["spec"]["replicas"]) == ("serve", 2)
    assert environment_of(container_of(deployment)).keys() == {"ADA_REDIS_URL_FILE", "ADA_API_KEY_FILE", "ADA_HTTP"}


@pytest.mark.parametrize("name", ADA_SERVICES)
def test_a_process_has_the_verb_the_secrets_and_the_settings_that_it_has_in_compose(name: str) -> None:
    container = container_of(deployments(EVERY_PROCESS)[name])
    there = SERVICES[name]["environment"]
    here = {one: text for one, text in environment_of(container).items() if one != "ADA_HTTP"}
    assert container["args"] == SERVICES[name]["command"]
    assert {one: text.replace("/ada/", "/") for one, text in here.items() if one.endswith("_FILE")} == {
        one: text for one, text in there.items() if one.endswith("_FILE")
    }
    assert here.keys() == there.keys()
    assert VALUES["processes"][name].get("shared", False) == ("speech:/data/speech" in SERVICES[name]["volumes"])


def test_the_chart_has_the_processes_of_compose() -> None:
    assert list(VALUES["processes"]) == ADA_SERVICES


@pytest.mark.parametrize("name", ADA_SERVICES)
def test_each_secret_that_a_process_names_is_a_file_that_is_mounted(name: str) -> None:
    deployment = deployments(EVERY_PROCESS)[name]
    volumes = {one["name"]: one for one in pod_of(deployment)["volumes"]}
    mounts = {one["name"]: one["mountPath"] for one in container_of(deployment)["volumeMounts"]}
    files = {f"{mounts['secrets']}/{item['path']}" for item in volumes["secrets"]["secret"]["items"]}
    named = {text for one, text in environment_of(container_of(deployment)).items() if one.endswith("_FILE")}
    assert files == named
    assert mounts.keys() == volumes.keys()
    assert volumes["secrets"]["secret"]["secretName"] == "ada"


@pytest.mark.parametrize("name", ADA_SERVICES)
def test_a_process_is_an_ordinary_user_without_rights_on_a_file_system_that_is_not_written(name: str) -> None:
    deployment = deployments(EVERY_PROCESS)[name]
    pod, container = pod_of(deployment), container_of(deployment)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    assert f"--uid {pod['securityContext']['runAsUser']} " in DOCKERFILE
    assert container["resources"] == VALUES["resources"]
    assert "cpu" not in container["resources"]["limits"]


def test_the_program_and_the_port_are_those_of_the_image() -> None:
    entry = json.loads(re.findall(r"^ENTRYPOINT (.*)", DOCKERFILE, re.MULTILINE)[0])
    found = deployments(EVERY_PROCESS)
    for name in ADA_SERVICES:
        container = container_of(found[name])
        for command in commands_of_probes(container):
            assert command == [*entry, *container["args"], "--healthy"]
    serve = container_of(found["serve"])
    assert f"ADA_HTTP={environment_of(serve)['ADA_HTTP']} " in DOCKERFILE.replace("\n", " ")
    assert serve["ports"] == [{"name": "http", "containerPort": 8080}]


@pytest.mark.parametrize("name", ADA_SERVICES)
def test_each_process_is_probed_for_its_life_and_for_its_readiness(name: str) -> None:
    container = container_of(deployments(EVERY_PROCESS)[name])
    if name != "serve":
        assert len(list(commands_of_probes(container))) == 2
        return
    paths = [container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")]
    assert paths == ["/livez", "/livez", "/readyz"]
    assert set(paths) <= {route.path for route in OPEN_ROUTES}


def test_the_service_leads_to_the_port_of_the_api() -> None:
    [service] = [one for one in rendered({}) if one["kind"] == "Service"]
    pods = deployments({})["serve"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"] == {"selector": pods, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}


def test_of_several_replicas_one_may_be_evicted_at_a_time() -> None:
    manifests = rendered({"processes": {"vk": {"replicas": 3}, "sms": {"replicas": 1}}})
    budgets = {one["metadata"]["name"]: one["spec"] for one in manifests if one["kind"] == "PodDisruptionBudget"}
    assert budgets.keys() == {"ada-serve", "ada-vk"}
    assert budgets["ada-vk"]["maxUnavailable"] == 1


def test_two_processes_of_one_telegram_account_never_run_at_the_same_time() -> None:
    found = deployments(EVERY_PROCESS)
    assert {name for name, one in found.items() if one["spec"].get("strategy") == {"type": "Recreate"}} == {"telegram"}


def test_a_process_has_the_time_that_its_end_takes() -> None:
    settings = [courier_module(channel).Settings for channel in channels() if channel != "echo"]
    attempts = [kind.timeout.total_seconds() for kind in settings]
    longest = max(*attempts, GRACE_OF_JOBS.total_seconds(), 2 * SHUTDOWN_TIMEOUT)
    for deployment in deployments(EVERY_PROCESS).values():
        before = container_of(deployment).get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        assert pod_of(deployment)["terminationGracePeriodSeconds"] >= before + 2 * longest - 10


def test_speech_and_pictures_are_in_one_volume_of_those_that_make_and_send_them() -> None:
    for name, deployment in deployments(VOLUMES).items():
        paths = {one["mountPath"]: one for one in container_of(deployment)["volumeMounts"]}
        assert ("/data/speech" in paths) == VALUES["processes"][name].get("shared", False)
        assert paths["/config"]["readOnly"]


def test_the_chart_has_the_version_of_ada() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((HELM_CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_the_notes_name_a_key_that_no_process_reads() -> None:
    assert "No process" not in notes({})
    assert "No process reads sms_password" in notes({"secret": {"keys": ["redis_url", "sms_password"]}})
