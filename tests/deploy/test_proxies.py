"""Requests of workers, clients and browsers through the samples for nginx and Caddy reach a real server unchanged."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest
import requests
import taskcluster

from conductor_app.settings.table import DEFAULTS
from conductor_app.tasks.commands.waits import MAX_WAIT_SECONDS
from tests.clients.test_taskcluster_queue import LINUX, WORKER, definition, moment
from tests.deploy.proxies import HOST, NGINX, ROOT, Proxy, running_proxy
from tests.management.server import Server

SERVER = "127.0.0.1:8000"
"""The address of the server in the samples."""
TOKEN, PASSWORD = "a" * 44, "a long passphrase"
MIB = 1024 * 1024
KINDS = [
    pytest.param(kind, marks=pytest.mark.skipif(not shutil.which(kind), reason=f"{kind} is not installed."))
    for kind in ("nginx", "caddy")
]


@pytest.fixture(scope="module")
def server(new_data_folder) -> Iterator[Server]:
    running = Server(
        new_data_folder("server"),
        HTTPS="on",
        ALLOWED_HOSTS=HOST,
        TASKCLUSTER_ROOT_CLIENT_ID="static/root",
        TASKCLUSTER_ROOT_ACCESS_TOKEN=TOKEN,
        DJANGO_SUPERUSER_PASSWORD=PASSWORD,
    ).wait_until_up()
    yield running
    running.stop()


@pytest.fixture(scope="module", params=KINDS)
def proxy(request, server, tmp_path_factory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp(request.param)
    with running_proxy(request.param, folder, {SERVER: f"127.0.0.1:{server.port}"}) as running:
        yield running


@pytest.fixture
def api(proxy) -> "Api":
    return Api(proxy)


class Api:
    """Calls of Conductor's API through a proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self.session, self.url = proxy.session(), f"{proxy.url}/api"

    def __call__(self, method: str, path: str, body: object = None) -> requests.Response:
        return self.session.request(method, self.url + path, json=body, timeout=60)

    def register(self, name: str) -> None:
        step = {"name": name, "taskReferenceName": "step"}
        assert self("PUT", "/metadata/workflow", [{"name": name, "version": 1, "tasks": [step]}]).ok


def test_a_long_poll_waits_until_a_run_starts(api, proxy):
    api.register("waits")
    found: list[requests.Response] = []
    poll = f"{api.url}/tasks/poll/batch/waits?workerid=w&count=1&timeout=5000"
    thread = Thread(target=lambda: found.append(proxy.session().get(poll, timeout=60)))
    thread.start()
    run = api("POST", "/workflow/waits", {}).text
    thread.join()
    [task] = found[0].json()

    report = {"workflowInstanceId": run, "taskId": task["taskId"], "status": "COMPLETED"}

    assert api("POST", "/tasks", report).ok
    assert api("GET", f"/workflow/{run}").json()["status"] == "COMPLETED"


def test_a_slash_in_a_name_reaches_the_server_encoded(api):
    assert api("POST", "/metadata/taskdefs", [{"name": "a/b//c", "ownerEmail": "me@example.org"}]).ok

    assert api("GET", "/metadata/taskdefs/a%2Fb%2F%2Fc").json()["name"] == "a/b//c"


def test_a_request_as_large_as_the_server_permits_is_served(api):
    api.register("large")

    served = api("POST", "/workflow/large", {"text": "x" * (9 * MIB)})

    assert served.status_code == 200, served.text[:200]


@pytest.mark.parametrize(("size", "has_message"), [(20 * MIB + 1024, True), (22 * MIB, False)])
def test_a_larger_request_is_refused_by_the_server_and_a_much_larger_one_by_the_proxy(api, proxy, size, has_message):
    api.register("large")

    try:
        refused = api("POST", "/workflow/large", {"text": "x" * size})
    except requests.ConnectionError:
        # Caddy closes a connection of HTTP/1.1 whose client still sends. HTTP/2 has no such limit.
        assert proxy.kind == "caddy"
    else:
        assert refused.status_code == 413
        assert (b'"message"' in refused.content) == has_message


def test_a_signed_client_uploads_an_artifact_that_is_larger_than_a_request(proxy, monkeypatch):
    """The signature covers the host, the port and the encoded path, as the client has sent them."""
    session = proxy.session()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(proxy.certificate))

    def queue(client_id, token, certificate=None):
        known = {"clientId": client_id, "accessToken": token, "certificate": certificate}
        return taskcluster.Queue({"rootUrl": proxy.url, "maxRetries": 0, "credentials": known})

    root, id = queue("static/root", TOKEN), taskcluster.slugId()
    root.createTask(id, definition())
    [claim] = root.claimWork(LINUX, WORKER)["tasks"]
    worker = queue(*claim["credentials"].values())
    asked = {"storageType": "s3", "contentType": "text/plain", "expires": moment(minutes=30)}
    address = worker.createArtifact(id, 0, "public/a b/c?", asked)["putUrl"]

    sent = session.put(address, (b"x" * MIB for _ in range(30)), timeout=60)

    assert address.startswith(f"{proxy.url}/api/artifacts/")
    assert sent.status_code == 200
    signed = root.buildSignedUrl("getArtifact", id, 0, "public/a b/c?")
    assert len(session.get(signed, timeout=60).content) == 30 * MIB


def test_a_file_of_a_run_that_is_larger_than_a_request_is_uploaded(api):
    api.register("files")
    run = api("POST", "/workflow/files", {}).text
    created = api("POST", "/files", {"workflowId": run, "fileName": "log"}).json()

    sent = api.session.put(created["uploadUrl"], b"x" * (25 * MIB), timeout=60)

    assert sent.ok, sent.text[:200]


def test_an_administrator_signs_in_over_https(proxy, server):
    session = proxy.session()
    redirect = session.get(f"{proxy.http_url}/admin/login/", allow_redirects=False, timeout=30)
    page = session.get(f"{proxy.url}/admin/login/", timeout=30)
    [token] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[:1]
    form = {"csrfmiddlewaretoken": token, "username": "admin", "password": PASSWORD, "next": "/admin/"}

    signed_in = session.post(page.url, form, headers={"Referer": page.url}, timeout=30)

    assert redirect.status_code == 308
    assert re.fullmatch(rf"https://{HOST}(:\d+)?/admin/login/", redirect.headers["Location"])
    assert "Strict-Transport-Security" in page.headers
    assert signed_in.url == f"{proxy.url}/admin/" and signed_in.ok, signed_in.text[:500]
    assert all(cookie.secure for cookie in session.cookies)


def test_the_address_of_a_client_cannot_be_invented(proxy):
    """The server counts failures by the address that the proxy has seen."""
    session, statuses = proxy.session(), []
    page = session.get(f"{proxy.url}/admin/login/", timeout=30)
    [token] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[:1]
    form = {"csrfmiddlewaretoken": token, "username": "mallory", "password": "wrong"}
    for number in range(6):
        headers = {"Referer": page.url, "X-Forwarded-For": f"192.0.2.{number}"}
        statuses.append(session.post(page.url, form, headers=headers, timeout=30).status_code)

    assert statuses[-1] == 429


def test_metrics_are_not_public(proxy):
    assert proxy.session().get(f"{proxy.url}/metrics", timeout=30).status_code == 404
    assert proxy.session().get(f"{proxy.url}/actuator/prometheus", timeout=30).status_code == 404
    assert proxy.session().get(f"{proxy.url}/health", timeout=30).json()["healthy"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_of_events_is_passed_on_while_it_lasts(kind, tmp_path):
    received = Event()

    class Stream(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            if self.path == "/stream":
                self.wfile.write(b"data: 1\n\n")
                assert received.wait(60)
                self.wfile.write(b"data: 2\n\n")

        def log_message(self, *_: object) -> None:
            pass

    upstream = ThreadingHTTPServer(("127.0.0.1", 0), Stream)
    Thread(target=upstream.serve_forever, daemon=True).start()
    try:
        with running_proxy(kind, tmp_path, {SERVER: f"127.0.0.1:{upstream.server_port}"}) as proxy:
            headers = {"Accept": "text/event-stream"}
            reply = proxy.session().get(f"{proxy.url}/stream", headers=headers, stream=True, timeout=20)
            lines = reply.iter_lines()
            first = next(lines)
            received.set()

            assert first == b"data: 1"
            assert b"data: 2" in list(lines)
    finally:
        received.set()
        upstream.shutdown()


def test_limits_of_the_samples_fit_those_of_the_server():
    nginx = "".join((NGINX / name).read_text() for name in ("conductor-http.conf", "conductor-locations.conf"))
    caddy = (ROOT / "deploy" / "caddy" / "conductor.caddy").read_text()
    limits = [DEFAULTS[name] for name in ("max_request_bytes", "file_max_bytes", "artifact_max_bytes")]

    sizes = [int(size) * MIB for size in re.findall(r"client_max_body_size (\d+)m;", nginx)]
    assert sizes == [limit + MIB for limit in limits]
    sizes = [int(size) * MIB for size in re.findall(r"max_size (\d+)MiB", caddy)]
    assert sorted(sizes) == [limit + MIB for limit in limits]
    assert int(re.findall(r"proxy_read_timeout (\d+)s;", nginx)[0]) > MAX_WAIT_SECONDS
    assert int(re.findall(r"response_header_timeout (\d+)s", caddy)[0]) > MAX_WAIT_SECONDS


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed.")
@pytest.mark.parametrize("name", ["nginx.conf", "nginx-tls.conf"])
def test_nginx_accepts_the_configurations_of_the_compose_files(name, tmp_path):
    text = (ROOT / "deploy" / "compose" / name).read_text()
    text = text.replace("/etc/nginx/conductor", f"{NGINX}/conductor").replace("/tmp/", f"{tmp_path}/")
    text = re.sub(r"server web-\d:8000;", "server 127.0.0.1:8000;", text)
    if "ssl_certificate" in text:
        from tests.deploy.proxies import create_certificate

        create_certificate(tmp_path)
        text = text.replace("/run/secrets/tls_certificate", f"{tmp_path}/conductor.crt")
        text = text.replace("/run/secrets/tls_key", f"{tmp_path}/conductor.key")
    (tmp_path / name).write_text(text)

    done = subprocess.run(["nginx", "-t", "-c", tmp_path / name], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr
