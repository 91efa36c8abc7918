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
CADDYFILE = ROOT / "deploy" / "caddy" / "Caddyfile"
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
    subject = ("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST},IP:127.0.0.1")
    files = ("-keyout", folder / "conductor.key", "-out", folder / "conductor.crt")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subprocess.run(["openssl", "req", "-x509", "-days", "1", *key, *subject, *files], check=True, capture_output=True)


def nginx_sample(folder: Path, upstream: str, http_port: int, https_port: int) -> str:
    """Return the sample with the ports and files of a test."""
    text = (NGINX / "conductor.conf").read_text()
    text = re.sub(r"^ *listen \[::\].*\n", "", text, flags=re.MULTILINE)
    replaced = {
        "listen 80;": f"listen 127.0.0.1:{http_port};",
        "listen 443 ssl": f"listen 127.0.0.1:{https_port} ssl",
        "server_name conductor.example.org;": f"server_name {HOST};",
        "https://$host$request_uri": f"https://$host:{https_port}$request_uri",
        "server 127.0.0.1:8000;": f"server {upstream};",
        "/etc/nginx/tls/": f"{folder}/",
        "/etc/nginx/conductor": f"{NGINX}/conductor",
    }
    for before, after in replaced.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


def caddy_sample(folder: Path, upstream: str, http_port: int, https_port: int) -> str:
    """Return the sample with the ports and files of a test, without the administration of Caddy."""
    text = CADDYFILE.read_text()
    replaced = {
        "{\n\tservers {": f"{{\n\tadmin off\n\thttp_port {http_port}\n\thttps_port {https_port}\n\tservers {{",
        "conductor.example.org {": f"{HOST} {{\n\tbind 127.0.0.1\n\ttls {folder}/conductor.crt {folder}/conductor.key",
        "reverse_proxy 127.0.0.1:8000": f"reverse_proxy {upstream}",
    }
    for before, after in replaced.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


@contextmanager
def running_proxy(kind: str, folder: Path, upstream: str) -> Iterator[Proxy]:
    """Run `nginx` or `caddy` with its sample in front of an address."""
    http_port, https_port = free_port(), free_port()
    create_certificate(folder)
    sample = {"nginx": nginx_sample, "caddy": caddy_sample}[kind](folder, upstream, http_port, https_port)
    (folder / "conductor.conf").write_text(sample)
    (folder / "nginx.conf").write_text(NGINX_MAIN.format(folder=folder, user="user root;" if os.geteuid() == 0 else ""))
    command = {
        "nginx": ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-g", "daemon off;"],
        "caddy": ["caddy", "run", "--config", folder / "conductor.conf", "--adapter", "caddyfile"],
    }[kind]
    proxy = Proxy(kind, f"https://{HOST}:{https_port}", f"http://{HOST}:{http_port}", folder / "conductor.crt")
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
