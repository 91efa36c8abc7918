"""Entry point of `make release`: check a tag, build everything that a release consists of, and say what to publish.

The tag is `vX.Y.Z` on the commit that is checked out. Nothing is uploaded. `SIGNING_KEY` names an SSH key, which
signs the checksums. `SKIP=upgrade,audit,sbom` skips what is slow and what needs a network.
"""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Collection, Iterator
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHART = "deploy/helm/conductor-app"
NAMESPACE = "conductor-app-release"
"""What a signature is valid for, as `ssh-keygen -Y verify -n` expects it."""


class ReleaseRefused(Exception):
    """Something is missing. The message says what to do."""


def run(*command: str) -> str:
    """Return the output of a command in the checkout.

    Raises:
        ReleaseRefused: when it fails, with the end of its output.
    """
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        output = (done.stdout + done.stderr).strip()[-2_000:]
        raise ReleaseRefused(f"`{' '.join(command)}` failed:\n{output}")
    return done.stdout.strip()


def tagged_version() -> str:
    """Return the version of the tag on the commit that is checked out.

    Raises:
        ReleaseRefused: when there is none, or the checkout has changes.
    """
    tags = [tag for tag in run("git", "tag", "--points-at", "HEAD").split() if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    if len(tags) != 1:
        raise ReleaseRefused("The commit needs one tag of the form v1.2.3: `git tag --sign v0.1.0`.")
    if changes := run("git", "status", "--porcelain"):
        raise ReleaseRefused(f"The checkout has changes that are not committed:\n{changes}")
    return tags[0][1:]


def changes_of(version: str) -> str:
    """Return the section of the changelog.

    Raises:
        ReleaseRefused: when it is missing or has no date.
    """
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)"
    found = re.search(heading, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE | re.DOTALL)
    if found is None:
        raise ReleaseRefused(f"CHANGELOG.md needs the heading `## [{version}] - YYYY-MM-DD`.")
    return found[1].strip()


def notes_of(version: str) -> str:
    """Return the release notes: what operators have to do, and the changes.

    Raises:
        ReleaseRefused: when a part is missing.
    """
    page = ROOT / "docs" / "release-notes" / f"{version}.md"
    if not page.exists():
        raise ReleaseRefused(f"{page.relative_to(ROOT)} is missing.")
    return f"{page.read_text().strip()}\n\n## Changes\n\n{changes_of(version)}\n"


def check_chart(version: str) -> None:
    """Check the versions of the chart.

    Raises:
        ReleaseRefused: when they are not the version of the release.
    """
    text = (ROOT / CHART / "Chart.yaml").read_text()
    if f"\nversion: {version}\n" not in text or f'\nappVersion: "{version}"\n' not in text:
        raise ReleaseRefused(f"`version` and `appVersion` in {CHART}/Chart.yaml must be {version}.")


def check_licenses(_version: str) -> None:
    """Check that the list of licenses is that of the locked packages, and that all are accepted."""
    run(sys.executable, "-m", "pytest", "--quiet", "tests/qa/test_licenses.py")


def check_upgrade(_version: str) -> None:
    """Upgrade databases of earlier versions."""
    run(sys.executable, "-m", "pytest", "--quiet", "tests/upgrade")


def check_vulnerabilities(_version: str) -> None:
    """Look up the locked packages among known vulnerabilities. Needs a network."""
    run("make", "audit")


CHECKS: dict[str, Callable[[str], None]] = {
    "chart": check_chart,
    "licenses": check_licenses,
    "upgrade": check_upgrade,
    "audit": check_vulnerabilities,
}


def build(version: str, folder: Path, skipped: Collection[str]) -> Iterator[Path]:
    """Write the artifacts into a folder, and yield each.

    Raises:
        ReleaseRefused: when a step fails, or builds another version.
    """
    common = ("--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(folder))
    run(sys.executable, "-m", "uv", "build", *common, str(ROOT))
    (folder / ".gitignore").unlink(missing_ok=True)
    distributions = (f"conductor_app-{version}-py3-none-any.whl", f"conductor_app-{version}.tar.gz")
    for name in distributions:
        if not (folder / name).exists():
            built = ", ".join(path.name for path in folder.iterdir())
            raise ReleaseRefused(f"The build made {built} instead of {name}.")
        yield folder / name

    yield archive(folder / f"conductor-app-{version}-image-context.tar.gz", "", "")
    yield archive(folder / f"conductor-app-{version}-chart.tgz", CHART, "conductor-app")
    notes = folder / "release-notes.md"
    notes.write_text(notes_of(version))
    yield notes
    if "sbom" in skipped:
        return
    run("make", "sbom")
    bill = folder / "sbom.cdx.json"
    bill.write_bytes((ROOT / "var" / "sbom.cdx.json").read_bytes())
    yield bill


def archive(path: Path, source: str, prefix: str) -> Path:
    """Write the committed files of a folder into an archive that is the same at each build, and return its path."""
    tree = f"HEAD:{source}" if source else "HEAD"
    packed = subprocess.run(
        ["git", "archive", "--format=tar", *([f"--prefix={prefix}/"] if prefix else []), tree],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    committed_at = int(run("git", "log", "-1", "--format=%ct"))
    with tarfile.open(fileobj=BytesIO(packed)) as committed, tarfile.open(path, "w:gz", compresslevel=9) as written:
        for member in committed.getmembers():
            member.mtime = committed_at
            written.addfile(member, committed.extractfile(member) if member.isfile() else None)
    return path


def sign(folder: Path, files: list[Path]) -> list[Path]:
    """Write the checksums of the files and, with `SIGNING_KEY`, their signature. Returns what was written."""
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
    if not (key := os.environ.get("SIGNING_KEY")):
        return [sums]
    run("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", NAMESPACE, str(sums))
    return [sums, sums.with_name("SHA256SUMS.sig")]


def name_is_registered() -> bool | None:
    """Return whether the package index of this machine knows the name of the package, or None if it cannot be asked."""
    command = [sys.executable, "-m", "pip", "index", "versions", "conductor-app"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return True
    return False if "No matching distribution" in done.stderr else None


def instructions(version: str, folder: Path, is_signed: bool) -> str:
    """Return what a maintainer has to publish."""
    warning = {
        True: "",
        False: "WARNING: the name conductor-app is not registered at the package index. Register it first: an\n"
        "attacker could, and would receive the keys of all users who install the package by its name.\n\n",
        None: "WARNING: the package index did not answer. Make sure that the name conductor-app is yours.\n\n",
    }[name_is_registered()]
    signature = "" if is_signed else "Nothing is signed: set SIGNING_KEY to a private SSH key to sign the checksums.\n"
    here = folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder
    return f"""{warning}{signature}Everything of {version} is in {here}. Publish it:

  git push origin v{version}
  python -m twine upload {here}/conductor_app-{version}*
  mkdir /tmp/context && tar -xzf {here}/conductor-app-{version}-image-context.tar.gz -C /tmp/context
  cd /tmp/context && docker build --build-arg VERSION={version} --file deploy/docker/Dockerfile --tag IMAGE:{version} .
  docker push IMAGE:{version}
  helm push {here}/conductor-app-{version}-chart.tgz oci://REGISTRY
  gh release create v{version} --notes-file {here}/release-notes.md {here}/*

`.github/workflows/release.yml` does the same for a tag that is pushed. Then set `IS_PUBLISHED` in
docs/.site/root_pages.py, so that the documentation says `pip install conductor-app`.
"""


def main() -> None:
    skipped = set(filter(None, os.environ.get("SKIP", "").split(",")))
    try:
        version = tagged_version()
        notes_of(version)
        for name, check in CHECKS.items():
            print(f"{name}: skipped" if name in skipped else f"{name} ...", flush=True)
            if name not in skipped:
                check(version)
        folder = Path(os.environ.get("RELEASE_DIR", ROOT / "var" / "release" / version)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if list(folder.iterdir()):
            raise ReleaseRefused(f"{folder} is not empty. Delete it, or set RELEASE_DIR.")
        written = sign(folder, list(build(version, folder, skipped)))
    except ReleaseRefused as refusal:
        sys.exit(str(refusal))
    print(instructions(version, folder, is_signed=len(written) > 1))


if __name__ == "__main__":
    main()
