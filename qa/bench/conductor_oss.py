"""The server conductor-oss, with a PostgreSQL server of its own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from qa.faults.backends import wait_until
from qa.faults.processes import Member
from tests.free_port import free_port

from .client import Client
from .database import Database, start_database
from .servers import NotAvailable, Server

CONDUCTOR_OSS = "conductor-oss"
ARTIFACT = "org.conductoross:conductor-server:3.32.3:jar:boot"
LEAST_JAVA = 21
HEAP, START_SECONDS = "2g", 600


@contextmanager
def start_conductor_oss(folder: Path) -> Iterator[Server]:
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
        parts = {"JVM": member.pid, "PostgreSQL": database.pid}
        yield Server(CONDUCTOR_OSS, url, parts=parts, database=database)


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
