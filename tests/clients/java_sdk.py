"""The Java SDK: Maven compiles the programs of `java/` against it, once for each state of them."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("java")
MAX_SECONDS = 600
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for short programs, such as Maven and tests: they spend less time on compiling than by default."""
NEWEST = 21
"""The Java that the newest SDK needs; with an older one, from 17 on, the last SDK for that is tested."""


def maven() -> str:
    """Return Maven; skip the test where it or a JDK is missing."""
    found = shutil.which("mvn")
    if not found:
        pytest.skip("Maven (mvn) is not installed: the Java SDK cannot be tested.")
    return found


def java_home() -> Path | None:
    """Return the newest installed JDK; None leaves the choice to Maven."""
    folders = [Path(os.environ.get("JAVA_HOME", "")), *Path("/usr/lib/jvm").glob("*")]
    found = {version: home for home in folders if (home / "bin/javac").exists() and (version := version_of(home))}
    return found[max(found)] if found else None


def version_of(home: Path) -> int:
    """Return the version of a JDK, 0 if it is unknown."""
    release = home / "release"
    known = re.search(r'JAVA_VERSION="(\d+)', release.read_text(encoding="utf-8")) if release.exists() else None
    return int(known[1]) if known else 0


def compile_programs() -> tuple[Path, int]:
    """Compile the programs if necessary. Return the path and version of Java.

    A failed download is a failed test: a machine with Maven is meant to run it.
    """
    home = java_home()
    if home is None or (version := version_of(home)) < 17:
        pytest.skip("No JDK from 17 on is installed: the Java SDK cannot be tested.")
    sources = [FOLDER / "pom.xml", *sorted(FOLDER.rglob("*.java"))]
    state = hashlib.sha256(b"".join(path.read_bytes() for path in sources) + str(home).encode()).hexdigest()
    mark = FOLDER / "target" / "compiled"
    if not mark.exists() or mark.read_text(encoding="utf-8") != state:
        shutil.rmtree(FOLDER / "target", ignore_errors=True)
        goals = ["compile", "dependency:build-classpath", "-Dmdep.outputFile=target/classpath"]
        environment = {**os.environ, "JAVA_HOME": str(home), "MAVEN_OPTS": QUICK_START}
        done = subprocess.run(
            [maven(), "-B", "-q", *goals],
            cwd=FOLDER,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
        )
        assert done.returncode == 0, f"Maven failed:\n{done.stdout[-6000:]}{done.stderr[-2000:]}"
        mark.write_text(state, encoding="utf-8")
    return home / "bin" / "java", version


def run_program(java: Path, program: str, **environment: str) -> dict[str, str]:
    """Run a program against a server. Return the result of each call, by method."""
    path = f"target/classes:{(FOLDER / 'target' / 'classpath').read_text(encoding='utf-8').strip()}"
    done = subprocess.run(
        [java, *QUICK_START.split(), "-cp", path, f"shop.{program}"],
        cwd=FOLDER,
        env=environment,
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
    )
    found = re.search(r"^RESULTS (.*)$", done.stdout, re.MULTILINE)
    assert found, f"{done.stdout[-6000:]}{done.stderr[-6000:]}"
    return json.loads(found[1])
