"""The servers that are compared: this one and conductor-oss, each with a PostgreSQL server of its own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.client import Client
from tests.bench.processes import cpu_seconds, pss_mb
from tests.bench.servers import Installation, start_server
from tests.faults.backends import Redis, wait_until
from tests.faults.processes import Member
from tests.free_port import free_port

from .database import SETTINGS, Database, start_database

THIS, BASE, CONDUCTOR_OSS = "this server", "this server, base", "conductor-oss"
"""The servers. The base is this server of another checkout: the state before a change."""
ARTIFACT = "org.conductoross:conductor-server:3.32.1:jar:boot"
LEAST_JAVA = 21
HEAP, START_SECONDS = "2g", 600


class NotAvailable(Exception):
    """A program cannot run on this machine. The message says what is missing."""


@dataclass
class System:
    """A running server and its processes."""

    name: str
    url: str
    token: str
    database: Database
    parts: dict[str, int] = field(default_factory=dict)
    """The process of each part, with descendants: web, worker, beat, Redis, PostgreSQL; or JVM, PostgreSQL."""

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU time of each part so far."""
        return {name: cpu_seconds(pid) for name, pid in self.parts.items()}

    def pss_mb(self) -> dict[str, float]:
        """Return the memory of each part."""
        return {name: pss_mb(pid) for name, pid in self.parts.items()}


@contextmanager
def start_this_server(folder: Path, web_workers: int, base: Path | None = None) -> Iterator[System]:
    """Start the cluster profile, of this checkout or of a base. Its callers have a token.

    Raises:
        NotAvailable: the base has no environment.
    """
    folder.mkdir()
    log = folder / "server.log"
    installed = Installation(log=log) if base is None else Installation(base, str(base / ".venv/bin/python"), log)
    if not os.access(installed.python, os.X_OK):
        raise NotAvailable(f"There is no {installed.python}. Run `make .venv/for-run` in {base}.")
    with ExitStack() as stack:
        database = stack.enter_context(start_database(folder))
        redis = Redis(folder, folder / "redis.log")
        stack.callback(redis.member.terminate)
        redis.start()
        environment = {
            "DJANGO_SETTINGS_MODULE": "conductor_app.settings.cluster",
            "DATABASE_URL": database.url,
            "REDIS_URL": redis.address(),
            "SECRET_KEY": "bench" * 10,
            "HTTPS": "0",
            "ALLOWED_HOSTS": "127.0.0.1",
        }
        server = stack.enter_context(start_server(environment, web_workers, database.url, True, installed))
        parts = {name: process.pid for name, process in server.processes.items()}
        parts |= {"Redis": redis.member.pid, "PostgreSQL": database.pid}
        yield System(BASE if base else THIS, server.url, server.token, database, parts)


@contextmanager
def start_conductor_oss(folder: Path) -> Iterator[System]:
    """Start conductor-oss with PostgreSQL for persistence, queues, index and locks.

    Raises:
        NotAvailable: there is no JDK, no Maven, or the server's jar cannot be downloaded.
    """
    java, jar = find_java(), find_jar()
    folder.mkdir()
    with ExitStack() as stack:
        database = stack.enter_context(start_database(folder))
        port = free_port()
        settings = conductor_oss_settings(database, port)
        command = [java, f"-Xmx{HEAP}", "-jar", str(jar), *(f"--{name}={value}" for name, value in settings.items())]
        log = folder / "conductor-oss.log"
        member = Member(CONDUCTOR_OSS, command, os.environ, log)
        member.start()
        stack.callback(member.terminate)
        url = f"http://127.0.0.1:{port}/api"
        try:
            wait_until(lambda: not member.is_alive or _is_healthy(port), START_SECONDS, CONDUCTOR_OSS)
        except TimeoutError as error:
            raise NotAvailable(f"{error} {_end_of(log)}") from None
        if not member.is_alive:
            raise NotAvailable(f"conductor-oss ended during its start: {_end_of(log)}")
        yield System(CONDUCTOR_OSS, url, "", database, {"JVM": member.pid, "PostgreSQL": database.pid})


def conductor_oss_settings(database: Database, port: int) -> dict[str, object]:
    """Return the properties that differ from the defaults of the server."""
    return {
        "server.port": port,
        "spring.datasource.url": f"jdbc:postgresql://127.0.0.1:{database.port}/postgres",
        "spring.datasource.username": "postgres",
        "spring.datasource.password": "none",
        "spring.datasource.hikari.maximum-pool-size": 32,
        "conductor.db.type": "postgres",
        "conductor.queue.type": "postgres",
        "conductor.indexing.enabled": "true",
        "conductor.indexing.type": "postgres",
        # The index in PostgreSQL replaces Elasticsearch, whose client must not start.
        "conductor.elasticsearch.version": 0,
        "conductor.app.workflow-execution-lock-enabled": "true",
        "conductor.workflow-execution-lock.type": "postgres",
        "conductor.integrations.ai.enabled": "false",
        "conductor.grpc-server.enabled": "false",
        "logging.level.root": "WARN",
    }


def _is_healthy(port: int) -> bool:
    try:
        return Client(f"http://127.0.0.1:{port}").get("/health")[0] == 200
    except (OSError, EOFError):
        return False


def _end_of(log: Path) -> str:
    return f"Its log ends: {log.read_text(errors='replace')[-1500:]}" if log.exists() else "It has no log."


def find_java() -> str:
    """Return the path of a `java` that is new enough: in JAVA_HOME, JDK_HOME, PATH or where Linux installs JDKs.

    Raises:
        NotAvailable: none was found.
    """
    homes = [os.environ[name] for name in ("JDK_HOME", "JAVA_HOME") if os.environ.get(name)]
    candidates = [f"{home}/bin/java" for home in homes] + ([shutil.which("java")] if shutil.which("java") else [])
    candidates += sorted(map(str, Path("/usr/lib/jvm").glob("*/bin/java")))
    found = {}
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            found[candidate] = _java_version(candidate)
            if found[candidate] >= LEAST_JAVA:
                return candidate
    versions = ", ".join(f"{path} is version {version}" for path, version in found.items()) or "no Java was found"
    raise NotAvailable(
        f"conductor-oss needs a JDK from version {LEAST_JAVA} on, and {versions}. Set JDK_HOME to the folder of one."
    )


def _java_version(java: str) -> int:
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    return int(version[1]) if version else 0


def find_jar() -> Path:
    """Return the server's jar from Maven's local repository, where Maven downloads it first if necessary.

    Raises:
        NotAvailable: there is no Maven, or it cannot download the jar.
    """
    jar = jar_path()
    if os.environ.get("CONDUCTOR_OSS_JAR") and not jar.is_file():
        raise NotAvailable(f"CONDUCTOR_OSS_JAR names no file: {jar}")
    if jar.is_file():
        return jar
    maven = shutil.which("mvn")
    if not maven:
        raise NotAvailable(
            f"Maven (`mvn`), which downloads {ARTIFACT}, is missing. Or set CONDUCTOR_OSS_JAR to the jar."
        )
    print(f"Downloading {ARTIFACT} (440 MB) ...", file=sys.stderr, flush=True)
    command = [maven, "-q", "-B", "dependency:get", f"-Dartifact={ARTIFACT}", "-Dtransitive=false"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode or not jar.is_file():
        raise NotAvailable(f"Maven could not download {ARTIFACT}: {(done.stdout + done.stderr)[-600:]}")
    return jar


def jar_path() -> Path:
    """Return where the server's jar is or would be: at CONDUCTOR_OSS_JAR, or in Maven's local repository."""
    if path := os.environ.get("CONDUCTOR_OSS_JAR"):
        return Path(path)
    group, name, version, _, classifier = ARTIFACT.split(":")
    folder = Path.home() / ".m2" / "repository" / group.replace(".", "/") / name / version
    return folder / f"{name}-{version}-{classifier}.jar"


def describe_settings() -> str:
    return ", ".join(f"{name}={value}" for name, value in SETTINGS.items() if value)
