"""nginx and Caddy with the samples of this project in front of real servers, with other addresses and files."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from tests.deploy.settings_in_code import ROOT
from tests.free_port import free_port
from tests.management.server import wait_until

NGINX = ROOT / "deploy" / "nginx"
CADDY = ROOT / "deploy" / "caddy"
HOST = "localhost"
NGINX_MAIN = """
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/conductor.conf;
}}
"""


@dataclass(frozen=True)
class Proxy:
    """A running `nginx` or `caddy`: its addresses, and the certificate that it presents."""

    kind: str
    url: str
    http_url: str
    certificate: Path

    def session(self) -> requests.Session:
        """Return a session that trusts the certificate."""
        session = requests.Session()
        session.verify = str(self.certificate)
        session.trust_env = False
        return session


def create_certificate(folder: Path) -> None:
    """Write a certificate for this machine, valid for a day."""
    names = ",".join(f"DNS:{name}" for name in (HOST, f"shop.{HOST}", f"bank.{HOST}"))
    subject = ("-subj", f"/CN={HOST}", "-addext", f"subjectAltName={names},IP:127.0.0.1")
    files = ("-keyout", folder / "conductor.key", "-out", folder / "conductor.crt")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subprocess.run(["openssl", "req", "-x509", "-days", "1", *key, *subject, *files], check=True, capture_output=True)


def replace_all(text: str, replaced: dict[str, str]) -> str:
    """Replace texts, each of which the sample must contain."""
    for before, after in replaced.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


def nginx_sample(folder: Path, sample: str, http_port: int, https_port: int) -> str:
    """Return a sample with the ports and files of a test."""
    text = re.sub(r"^ *listen \[::\].*\n", "", (NGINX / f"conductor{sample}.conf").read_text(), flags=re.MULTILINE)
    replaced = {
        "listen 80;": f"listen 127.0.0.1:{http_port};",
        "listen 443 ssl": f"listen 127.0.0.1:{https_port} ssl",
        "https://$host$request_uri": f"https://$host:{https_port}$request_uri",
        "/etc/nginx/tls/": f"{folder}/",
        "/etc/nginx/conductor": f"{NGINX}/conductor",
    }
    return replace_all(text, replaced)


def caddy_sample(folder: Path, sample: str, http_port: int, https_port: int) -> str:
    """Return a sample with the ports and files of a test, without the administration of Caddy."""
    options = f"{{\n\tadmin off\n\thttp_port {http_port}\n\thttps_port {https_port}\n\tservers {{"
    common = replace_all((CADDY / "conductor.caddy").read_text(), {"{\n\tservers {": options})
    (folder / "conductor.caddy").write_text(common)
    certificate = f"\tbind 127.0.0.1\n\ttls {folder}/conductor.crt {folder}/conductor.key\n\timport conductor_requests"
    return replace_all((CADDY / f"Caddyfile{sample}").read_text(), {"\timport conductor_requests": certificate})


SAMPLES = {
    "nginx": (nginx_sample, {"one": "", "teams": "-teams", "paths": "-paths"}),
    "caddy": (caddy_sample, {"one": "", "teams": ".teams", "paths": ".paths"}),
}
"""By program: the function that adapts a sample, and what the names of its files end with."""
HOSTS = {
    "one": {"conductor.example.org": HOST},
    "teams": {"shop.example.org": f"shop.{HOST}", "bank.example.org": f"bank.{HOST}"},
    "paths": {"tools.example.org": HOST},
}


@contextmanager
def running_proxy(
    kind: str, folder: Path, upstreams: dict[str, str], sample: str = "one", ports: tuple[int, int] | None = None
) -> Iterator[Proxy]:
    """Run `nginx` or `caddy` with a sample in front of servers.

    `upstreams`: the address of each server, by the address in the sample. `ports`: those of HTTP and of HTTPS.
    """
    http_port, https_port = ports or (free_port(), free_port())
    create_certificate(folder)
    adapt, endings = SAMPLES[kind]
    text = adapt(folder, endings[sample], http_port, https_port)
    (folder / "conductor.conf").write_text(replace_all(text, upstreams | HOSTS[sample]))
    (folder / "nginx.conf").write_text(NGINX_MAIN.format(folder=folder, user="user root;" if os.geteuid() == 0 else ""))
    command = {
        "nginx": ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-g", "daemon off;"],
        "caddy": ["caddy", "run", "--config", folder / "conductor.conf", "--adapter", "caddyfile"],
    }[kind]
    host = next(iter(HOSTS[sample].values()))
    proxy = Proxy(kind, f"https://{host}:{https_port}", f"http://{host}:{http_port}", folder / "conductor.crt")
    environment = {"HOME": str(folder), "PATH": f"{Path(shutil.which(kind) or kind).parent}:/usr/bin:/bin"}
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        wait_until(lambda: process.poll() is not None or _responds(proxy), seconds=60)
        assert process.poll() is None, (folder / "output").read_text()
        yield proxy
    finally:
        process.terminate()
        process.wait(60)


def _responds(proxy: Proxy) -> bool:
    try:
        return proxy.session().get(f"{proxy.url}/metrics", timeout=5).status_code == 404
    except requests.ConnectionError:
        return False
