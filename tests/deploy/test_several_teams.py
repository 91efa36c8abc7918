"""Two servers behind one nginx or Caddy, with a host name or a path each: nothing of one team is valid for another."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from conductor.client.configuration.configuration import Configuration
from conductor.client.configuration.settings.authentication_settings import AuthenticationSettings
from conductor.client.orkes_clients import OrkesClients

from tests.access.test_openid import Provider, running_openid_provider
from tests.clients.shop_workflow import Shop, serve_tasks, worker
from tests.deploy.proxies import Proxy, running_proxy
from tests.deploy.settings_in_code import ROOT
from tests.free_port import free_port
from tests.management.server import Server

PASSWORD = "a long passphrase"
TEAMS = ("shop", "bank")
MIB = 1024 * 1024
KINDS = [
    pytest.param(kind, marks=pytest.mark.skipif(not shutil.which(kind), reason=f"{kind} is not installed."))
    for kind in ("nginx", "caddy")
]


@dataclass
class Team:
    """A running server of a team, and its address through the proxy."""

    name: str
    url: str
    prefix: str
    server: Server
    key: str
    secret: str

    def token(self) -> str:
        reply = requests.post(f"{self.url}/api/token", json={"keyId": self.key, "keySecret": self.secret}, timeout=60)
        assert reply.ok, reply.text
        return reply.json()["token"]

    def call(self, method: str, path: str, body: object = None, token: str = "") -> requests.Response:
        headers = {"X-Authorization": token or self.token()}
        return requests.request(method, f"{self.url}/api{path}", json=body, headers=headers, timeout=60)


def create_key(folder: Path) -> tuple[str, str]:
    """Create an access key in the data folder of a server, as its operator does."""
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(folder / "var")}
    command = [sys.executable, "manage.py", "create_access_key", "programs"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    key, secret = re.findall(r"^CONDUCTOR_AUTH_\w+ (\S+)$", done.stdout, re.MULTILINE)
    return key, secret


@pytest.fixture(scope="module")
def names_of_this_machine() -> Iterator[None]:
    """Resolve names below `localhost`, as browsers do, to this machine."""
    patch, resolve = pytest.MonkeyPatch(), socket.getaddrinfo

    def getaddrinfo(host, *arguments, **options):
        is_ours = isinstance(host, str) and host.endswith(".localhost")
        return resolve("127.0.0.1" if is_ours else host, *arguments, **options)

    patch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    patch.undo()


@pytest.fixture(scope="module", params=["teams", "paths"])
def sample(request) -> str:
    """Return the sample: a host name for each team, or a path."""
    return request.param


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    return free_port(), free_port()


@pytest.fixture(scope="module")
def addresses(sample, ports) -> dict[str, str]:
    """Return the address of each team."""
    if sample == "teams":
        return {name: f"https://{name}.localhost:{ports[1]}" for name in TEAMS}
    return {name: f"https://localhost:{ports[1]}/{name}" for name in TEAMS}


@pytest.fixture(scope="module")
def provider(addresses, tmp_path_factory) -> Iterator[Provider]:
    callbacks = [f"{address}/admin/login/openid/callback/" for address in addresses.values()]
    with running_openid_provider(tmp_path_factory.mktemp("provider"), *callbacks) as provider:
        yield provider


@pytest.fixture(scope="module")
def teams(addresses, provider, new_data_folder) -> Iterator[dict[str, Team]]:
    started = {}
    try:
        for number, (name, url) in enumerate(addresses.items()):
            folder, prefix = new_data_folder(name), urlsplit(url).path
            server = Server(
                folder,
                HTTPS="on",
                ALLOWED_HOSTS=str(urlsplit(url).hostname),
                PUBLIC_URL=url,
                SCRIPT_NAME=prefix,
                CONDUCTOR_API_ACCESS="token",
                DJANGO_SUPERUSER_PASSWORD=PASSWORD,
                OIDC_ISSUER=provider.issuer,
                OIDC_CLIENT_ID=("conductor", "conductor-2")[number],
                OIDC_CLIENT_SECRET="client-secret",
                EXTERNAL_GROUP_ROLES=f'{{"{name}": ["USER_READ_ONLY"], "platform": ["ADMIN"]}}',
            )
            started[name] = Team(name, url, prefix, server, "", "")
        for team in started.values():
            team.server.wait_until_up()
            team.key, team.secret = create_key(Path(team.server.said).parent)
        yield started
    finally:
        for team in started.values():
            team.server.stop()


@pytest.fixture(scope="module", params=KINDS)
def proxy(request, sample, teams, ports, names_of_this_machine, tmp_path_factory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp(request.param)
    upstreams = {
        f"127.0.0.1:{8001 + number}": f"127.0.0.1:{teams[name].server.port}" for number, name in enumerate(TEAMS)
    }
    patch = pytest.MonkeyPatch()
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        patch.setenv(name, str(folder / "conductor.crt"))
    with running_proxy(request.param, folder, upstreams, sample, ports) as running:
        yield running
    patch.undo()


@pytest.fixture
def shop(teams, proxy) -> Team:
    return teams["shop"]


@pytest.fixture
def bank(teams, proxy) -> Team:
    return teams["bank"]


def test_a_worker_of_each_team_completes_the_runs_of_its_own_server(shop, bank):
    """Both teams use the same names, which are different objects."""
    for team in (shop, bank):
        settings = AuthenticationSettings(key_id=team.key, key_secret=team.secret)
        configuration = Configuration(server_api_url=f"{team.url}/api", authentication_settings=settings)
        client = Shop(OrkesClients(configuration))
        client.define("pack")
        run_id = client.start(input={"size": 1, "customer": {}})

        def pack(size: int, packer: str = team.name) -> dict:
            return {"packed": f"{size} by {packer}"}

        with serve_tasks(configuration, worker("pack", pack)):
            run = client.wait_for_end(run_id)

        assert (run.status, run.tasks[0].output_data) == ("COMPLETED", {"packed": f"1 by {team.name}"})
        other = bank if team is shop else shop
        assert other.call("GET", f"/workflow/{run_id}").status_code == 404


def test_the_keys_and_tokens_of_one_team_are_refused_by_the_server_of_another(shop, bank):
    key = {"keyId": shop.key, "keySecret": shop.secret}

    assert shop.call("GET", "/metadata/workflow/names").status_code == 200
    assert bank.call("GET", "/metadata/workflow/names", token=shop.token()).status_code == 401
    assert requests.post(f"{bank.url}/api/token", json=key, timeout=60).status_code == 401


def sign_in(browser: requests.Session, team: Team) -> requests.Response:
    page = browser.get(f"{team.url}/admin/login/", timeout=60)
    [token] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[:1]
    form = {"csrfmiddlewaretoken": token, "username": "admin", "password": PASSWORD, "next": f"{team.prefix}/admin/"}
    return browser.post(page.url, form, headers={"Referer": page.url}, timeout=60)


def is_signed_in(browser: requests.Session, team: Team) -> bool:
    reply = browser.get(f"{team.url}/admin/system/", allow_redirects=False, timeout=60)
    return reply.status_code == 200


def test_a_browser_is_signed_in_at_both_servers_and_signs_out_of_one(shop, bank):
    browser = requests.Session()
    for team in (shop, bank):
        assert sign_in(browser, team).url == f"{team.url}/admin/"
    assert is_signed_in(browser, shop) and is_signed_in(browser, bank)
    page = browser.get(f"{bank.url}/admin/", timeout=60)
    [token] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[:1]

    left = browser.post(
        f"{bank.url}/admin/logout/", {"csrfmiddlewaretoken": token}, headers={"Referer": page.url}, timeout=60
    )

    assert left.ok, left.text[:500]
    assert is_signed_in(browser, shop) and not is_signed_in(browser, bank)
    scopes = {(cookie.domain, cookie.path) for cookie in browser.cookies}
    assert all(cookie.secure for cookie in browser.cookies)
    assert {path for _, path in scopes} == {team.prefix or "/" for team in (shop, bank)}


def test_the_session_of_one_server_is_refused_by_another(shop, bank):
    browser, thief = requests.Session(), requests.Session()
    sign_in(browser, shop)
    for cookie in browser.cookies:
        thief.cookies.set(cookie.name.replace("shop", "bank"), cookie.value)
        thief.cookies.set(cookie.name, cookie.value)

    assert is_signed_in(browser, shop)
    assert not is_signed_in(thief, bank)


def test_one_provider_signs_in_to_each_server_with_the_roles_of_that_server(provider, shop, bank):
    provider.set_users(
        ann={"preferred_username": "ann", "groups": ["shop"]},
        olga={"preferred_username": "olga", "groups": ["platform"]},
    )

    def opens(name: str, team: Team) -> int:
        browser = requests.Session()
        step = browser.get(f"{team.url}/admin/login/openid/", allow_redirects=False, timeout=60).headers["Location"]
        reply = browser.get(f"{step}", allow_redirects=False, timeout=60)
        step = requests.compat.urljoin(step, reply.headers["Location"]) + f"&user={name}"
        browser.get(step, timeout=60)
        return browser.get(f"{team.url}/admin/", allow_redirects=False, timeout=60).status_code

    assert (opens("ann", shop), opens("ann", bank)) == (200, 302)
    assert (opens("olga", shop), opens("olga", bank)) == (200, 200)


def test_addresses_reach_the_server_as_the_client_has_sent_them(shop, bank):
    assert shop.call("POST", "/metadata/taskdefs", [{"name": "a/b//c", "ownerEmail": "me@example.org"}]).ok

    assert shop.call("GET", "/metadata/taskdefs/a%2Fb%2F%2Fc").json()["name"] == "a/b//c"
    assert bank.call("GET", "/metadata/taskdefs/a%2Fb%2F%2Fc").status_code == 404


def test_a_file_of_a_run_that_is_larger_than_a_request_is_uploaded(shop):
    step = {"name": "files", "taskReferenceName": "step"}
    assert shop.call("PUT", "/metadata/workflow", [{"name": "files", "version": 1, "tasks": [step]}]).ok
    run = shop.call("POST", "/workflow/files", {}).text
    created = shop.call("POST", "/files", {"workflowId": run, "fileName": "log"}).json()

    sent = requests.put(created["uploadUrl"], b"x" * (25 * MIB), timeout=60)

    assert created["uploadUrl"].startswith(f"{shop.url}/api/files/content/")
    assert sent.ok, sent.text[:200]


def test_metrics_and_other_addresses_are_not_public(proxy, shop, bank):
    for team in (shop, bank):
        for path in ("/metrics", "/actuator/prometheus"):
            assert requests.get(f"{team.url}{path}", timeout=60).status_code == 404
        assert requests.get(f"{team.url}/health", timeout=60).json()["healthy"]
    if shop.prefix:
        root = shop.url.removesuffix(shop.prefix)
        for path in ("/", "/health", "/api/workflow/x", "/shopping/", "/shop/../health"):
            assert requests.get(f"{root}{path}", allow_redirects=False, timeout=60).status_code == 404
