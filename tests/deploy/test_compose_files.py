"""The compose files are valid, confine their containers, and use settings and paths that exist."""

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from conductor_app.processes.command_line import FURTHER_COMMANDS, SUBCOMMANDS
from tests.deploy.settings_in_code import ROOT, read_settings
from tests.deploy.tools import needs, run_tool

FOLDER = ROOT / "deploy" / "compose"
FILES = {
    "single": [FOLDER / "compose.yaml"],
    "root": [ROOT / "compose.yaml"],
    "cluster": [FOLDER / "compose.cluster.yaml"],
    "teams": [FOLDER / "compose.teams.yaml"],
    "tls": [FOLDER / "compose.cluster.yaml", FOLDER / "compose.tls.yaml"],
}
needs_compose = needs("docker-compose")


def configuration(name: str, **variables: str) -> dict[str, Any]:
    """Return the configuration that Docker Compose reads from files."""
    files = [word for file in FILES[name] for word in ("--file", file)]
    bare = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    done = run_tool("docker-compose", *files, "--profile", "*", "config", env=bare | variables, cwd="/")
    assert done.returncode == 0 and "level=" not in done.stderr, done.stderr
    return yaml.safe_load(done.stdout)


@needs_compose
@pytest.mark.parametrize("name", FILES)
def test_docker_compose_accepts_the_files(name):
    services = configuration(name)["services"]

    expected = {"single": {"conductor"}, "root": {"conductor"}, "teams": {"shop", "bank", "proxy"}}
    assert expected.get(name, {"web-1", "web-2", "worker"}) <= set(services)


@needs_compose
@pytest.mark.parametrize("name", FILES)
def test_containers_have_no_privileges_and_a_read_only_root(name):
    for service, options in configuration(name)["services"].items():
        assert options["security_opt"] == ["no-new-privileges:true"], service
        if service != "database":
            # The image of PostgreSQL starts as root, to give its folder to its user.
            assert (options["read_only"], options["cap_drop"]) == (True, ["ALL"]), service


@needs_compose
@pytest.mark.parametrize("name", FILES)
def test_containers_get_only_settings_of_the_server_and_files_that_exist(name):
    found = configuration(name)
    known = read_settings() | {f"{setting}_FILE" for setting in read_settings()}
    for service, options in found["services"].items():
        if service not in ("database", "cache", "proxy"):
            assert set(options["environment"]) <= known, service
            assert Path(options["build"]["context"], options["build"]["dockerfile"]).is_file()
            command = (options.get("command") or ["serve"])[0]
            assert command in SUBCOMMANDS or command in FURTHER_COMMANDS
        for volume in options.get("volumes", ()):
            assert volume["type"] == "volume" or Path(volume["source"]).is_file(), volume


@needs_compose
def test_only_this_machine_reaches_the_servers_without_tls():
    for name in ("single", "root", "cluster"):
        published = [port for each in configuration(name)["services"].values() for port in each.get("ports", ())]
        assert [port["host_ip"] for port in published] == ["127.0.0.1"]


@needs_compose
def test_the_proxy_serves_tls_and_is_the_trusted_one():
    variables = {"HTTPS": "on", "ALLOWED_HOSTS": "conductor.example.org", "NETWORK": "10.9.8"}
    services = configuration("tls", **variables)["services"]
    address = services["proxy"]["networks"]["services"]["ipv4_address"]

    assert [port["target"] for port in services["proxy"]["ports"]] == [8443, 8080]
    targets = {volume["target"]: Path(volume["source"]).name for volume in services["proxy"]["volumes"]}
    assert targets["/etc/nginx/nginx.conf"] == "nginx-tls.conf"
    for web in ("web-1", "web-2"):
        environment = services[web]["environment"]
        assert environment["HTTPS"] == "on" and environment["TRUSTED_PROXIES"] == f"{address}/32"
        assert environment["ALLOWED_HOSTS"] == "conductor.example.org,web-1,web-2"
        assert services[web]["networks"]["services"]["ipv4_address"].startswith("10.9.8.")


@needs_compose
def test_servers_of_teams_share_neither_a_network_nor_a_volume_nor_settings():
    services = configuration("teams", SHOP_HOST="shop.example.org", SHOP_IMAGE="conductor-app:0.2.0")["services"]
    shop, bank, proxy = (services[name] for name in ("shop", "bank", "proxy"))

    assert set(shop["networks"]) == {"shop"} and set(bank["networks"]) == {"bank"}
    assert [volume["source"] for each in (shop, bank) for volume in each["volumes"]] == ["shop", "bank"]
    assert "ports" not in shop and "ports" not in bank
    assert [port["host_ip"] for port in proxy["ports"]] == ["127.0.0.1"] * 2
    for name, server in (("shop", shop), ("bank", bank)):
        address = proxy["networks"][name]["ipv4_address"]
        assert server["environment"]["TRUSTED_PROXIES"] == f"{address}/32"
        assert server["environment"]["ALLOWED_HOSTS"] == proxy["environment"][f"{name.upper()}_HOST"]
    assert (shop["image"], bank["image"]) == ("conductor-app:0.2.0", "conductor-app:local")


@needs_compose
def test_everything_waits_for_the_migration():
    services = configuration("cluster")["services"]

    for name in ("web-1", "web-2", "worker", "beat", "events"):
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully", name
    assert services["migrate"]["restart"] == "no"


def test_the_created_secrets_are_long_private_and_kept(tmp_path):
    folder = tmp_path / "secrets"
    for _ in range(2):
        done = subprocess.run([FOLDER / "create-secrets", folder], capture_output=True, text=True, check=True)
        contents = {path.name: path.read_text() for path in folder.iterdir()}
        kept = contents if _ == 0 else kept  # noqa: F821
    secret_key, password = contents["secret_key"], contents["database_password"]

    assert contents == kept
    assert len(secret_key) >= 50 and len(password) >= 32
    assert contents["database_url"] == f"postgresql://conductor:{password}@database:5432/conductor"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not any(secret in done.stdout for secret in contents.values())


def test_the_secrets_of_the_files_are_those_that_the_script_creates(tmp_path):
    subprocess.run([FOLDER / "create-secrets", tmp_path], capture_output=True, check=True)
    text = (FOLDER / "compose.cluster.yaml").read_text()

    assert set(re.findall(r"file: secrets/(\w+)", text)) == {path.name for path in tmp_path.iterdir()}


def test_secrets_are_not_committed():
    tracked = subprocess.run(
        ["git", "check-ignore", "deploy/compose/secrets/secret_key", "deploy/compose/conductor.env"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert tracked.stdout.split() == ["deploy/compose/secrets/secret_key", "deploy/compose/conductor.env"]
