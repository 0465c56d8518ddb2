"""
Start the containers of docker-compose.yml, one profile after another, check what only they can show, and write the
results into COMPATIBILITY.md: ``make real``. The checks are in ``tests/servers/real.py``.

It needs a container engine (Docker, or Podman with its socket in DOCKER_HOST), the ports of the compose file (those of
.env.example in the environment choose others), 8 GB of memory, and the wheel in dist/ for the service `follow`. What it
makes has a label and names of its own, and is removed at the end, or by the next run after one that was killed.
"""

# ruff: noqa: INP001, T201 - a script
from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from es_simhash import SimHashClient, __version__
from tests.servers.fixtures import make_client
from tests.servers.real import CHECKS, XSRF, Place
from tests.servers.servers import detect, send

NAME = "es-simhash-real"
DOCUMENT = ROOT / "COMPATIBILITY.md"
MARKS = ("<!-- make real -->", "<!-- end of make real -->")
READY_SECONDS, STOP_SECONDS = 900, 60
# Profile: scheme, user, and the services that listen.
PROFILES = {
    "elasticsearch": ("http", "elastic", "elasticsearch", "kibana"),
    "opensearch": ("https", "admin", "opensearch", "opensearch-dashboards"),
}
SAME = {"image", "environment", "mem_limit", "entrypoint", "command"}
KNOWN = SAME | {"profiles", "ports", "volumes", "healthcheck", "depends_on", "restart", "stop_grace_period"}
STARTS = "The profile starts, and every container becomes healthy."


def resolve(value: Any, variables: Mapping[str, str]) -> Any:
    """Return *value* with each ``${NAME:-default}`` and ``${NAME:?message}`` replaced, and ``$$`` as ``$``."""
    if isinstance(value, dict):
        return {key: resolve(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [resolve(each, variables) for each in value]
    if not isinstance(value, str):
        return value
    pattern = r"\$(?:\$|\{(\w+):[-?]([^}]*)\})"
    return re.sub(pattern, lambda found: variables.get(found[1]) or found[2] if found[1] else "$", value)


def options_of(service: Mapping[str, Any]) -> dict[str, Any]:
    """Return a service of the compose file as arguments of ``docker.containers.create``."""
    if unknown := service.keys() - KNOWN:
        raise ValueError(f"tools/real.py does not know {sorted(unknown)} of a service: carry it over in options_of")
    options = {key: service[key] for key in SAME & service.keys()}
    ports = [each.rsplit(":", 2) for each in service.get("ports", [])]
    options["ports"] = {f"{inside}/tcp": (host, int(outside)) for host, outside, inside in ports}
    volumes = [each.split(":", 1) for each in service.get("volumes", [])]
    options["volumes"] = [
        f"{(ROOT / name).resolve() if '/' in name else f'{NAME}-{name}'}:{at}" for name, at in volumes
    ]
    if check := dict(service.get("healthcheck", {})):
        times = {each: int(check[each].removesuffix("s")) * 10**9 for each in ("interval", "timeout", "start_period")}
        options["healthcheck"] = check | times
    if service.get("restart", "no") != "no":
        options["restart_policy"] = {"Name": service["restart"]}
    return options


def sweep(engine: Any) -> None:
    """Stop and remove what carries our label: containers, then their network and volumes."""
    for container in engine.containers.list(all=True, filters={"label": NAME}):
        container.stop(timeout=STOP_SECONDS)
        container.remove(force=True, v=True)
    for kind in (engine.networks, engine.volumes):
        for each in kind.list(filters={"label": NAME}):
            each.remove()


class Containers:
    """The services of the compose file that were started, in one network, under the names that they call each other."""

    def __init__(self, engine: Any, services: Mapping[str, Any], pause: Callable[[float], object]) -> None:
        self._engine, self.services, self._pause = engine, services, pause
        self._started: dict[str, Any] = {}
        engine.networks.create(NAME, driver="bridge", labels={NAME: ""})

    def up(self, profile: str) -> None:
        """Start the services of *profile* in the order of the file, and wait until each is healthy."""
        services = {name: each for name, each in self.services.items() if profile in each["profiles"]}
        for name, service in services.items():
            for needed, how in service.get("depends_on", {}).items():
                self._wait(needed, how["condition"])
            options = options_of(service)
            for volume in options["volumes"]:
                if volume.startswith(NAME):
                    self._engine.volumes.create(volume.partition(":")[0], labels={NAME: ""})
            self._engine.images.pull(service["image"])
            options["networking_config"] = {NAME: self._engine.api.create_endpoint_config(aliases=[name])}
            created = self._engine.containers.create(name=f"{NAME}-{name}", labels=[NAME], network=NAME, **options)
            self._started[name] = created
            created.start()
        for name in (name for name, service in services.items() if "healthcheck" in service):
            self._wait(name, "service_healthy")

    def _wait(self, name: str, condition: str) -> None:
        """Wait as ``depends_on`` says; the error of a container that ended has the last lines of its log."""
        container = self._started[name]
        for _ in range(READY_SECONDS):
            container.reload()
            state = container.attrs["State"]
            if condition == "service_healthy" and (state.get("Health") or {}).get("Status") == "healthy":
                return
            if state["Status"] == "exited":
                if condition == "service_completed_successfully" and state["ExitCode"] == 0:
                    return
                break
            self._pause(1)
        raise RuntimeError(f"{name} ({state['Status']}) is not ready: {container.logs(tail=20).decode()}")


def check_profile(containers: Containers, profile: str, password: str, rows: list[tuple[str, str, str]]) -> None:
    """Start a profile and check it, then on OpenSearch the follower beside it; *rows* get what was shown."""
    scheme, user, name, board = PROFILES[profile]
    containers.up(profile)
    places = [containers.services[each]["ports"][0].rpartition(":")[0] for each in (name, board)]
    url, address = (f"{s}://{user}:{password}@{place}" for s, place in zip((scheme, "http"), places, strict=True))
    server = detect(url)
    _, status, _ = send(address, "GET", "/api/status", headers=XSRF[profile])
    product = f"{name} {server.version}, {board} {status['version']['number']}"
    rows.append((product, STARTS, "shown"))
    unverified = {"verify_certs": False, "ssl_show_warn": False} if scheme == "https" else {}
    with contextlib.closing(make_client(server, **unverified)) as client:
        for beside in (profile, "follow") if profile == "opensearch" else (profile,):
            if beside != profile:
                containers.up(beside)
            for check in CHECKS[beside]:
                try:
                    outcome = f"shown: {check(Place(server, SimHashClient(client), board=address))}"
                except Exception as error:  # noqa: BLE001 - whatever happens is the outcome
                    outcome = f"**failed**: {' '.join(str(error).split())[:200] or type(error).__name__}"
                print(f"{product}: {check.__name__}: {outcome}", flush=True)
                rows.append((product, check.__doc__ or "", outcome.replace("|", "\\|")))


def services_of(password: str) -> dict[str, Any]:
    """Return the services with their variables; the follower installs the wheel of this checkout, not that of PyPI."""
    ports = {name: value for name, value in os.environ.items() if name.endswith("_PORT")}
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    services = resolve(yaml.safe_load(text), ports | {"ES_SIMHASH_PASSWORD": password})["services"]
    (ROOT / "dist").mkdir(exist_ok=True)
    wheel = f"file:///dist/es_simhash-{__version__}-py3-none-any.whl"
    (ROOT / "dist/constraint.txt").write_text(f"es-simhash @ {wheel}\n", "utf-8")
    services["follow"]["volumes"] = ["./dist:/dist:ro"]
    services["follow"]["environment"]["PIP_CONSTRAINT"] = "/dist/constraint.txt"
    return services


def write(rows: list[tuple[str, str, str]], engine: str) -> None:
    """Put the rows between the two comments of COMPATIBILITY.md."""
    head = f"Run on {datetime.now(UTC):%Y-%m-%d} with es_simhash {__version__}, in containers of {engine}."
    lines = [head, "", "| containers | statement | outcome |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    before, _, rest = DOCUMENT.read_text("utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    DOCUMENT.write_text("\n".join([before + MARKS[0], "", *lines, "", MARKS[1]]) + after, "utf-8")


def main(docker: Any, pause: Callable[[float], object] = time.sleep) -> int:
    """Check both profiles; return 1 if something could not be shown."""
    try:
        engine = docker.from_env(timeout=2 * STOP_SECONDS)
        version = engine.version()["Version"]
    except docker.errors.DockerException as error:
        print(f"error: no container engine answers ({error}): start one, or name it in DOCKER_HOST", file=sys.stderr)
        return 1
    # OpenSearch wants letters of both cases, a digit and a sign.
    password = f"Aa1-{secrets.token_urlsafe(16)}"
    rows: list[tuple[str, str, str]] = []
    for profile in PROFILES:
        sweep(engine)
        try:
            check_profile(Containers(engine, services_of(password), pause), profile, password, rows)
        except Exception as error:  # noqa: BLE001 - the other profile is checked all the same
            print(f"error: {profile}: {error}", file=sys.stderr)
            rows.append((profile, STARTS, "**failed**"))
        finally:
            sweep(engine)
    write(rows, f"engine {version}")
    return int(any("**failed**" in row[2] for row in rows))


if __name__ == "__main__":
    import docker

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(docker))
