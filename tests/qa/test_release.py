"""`make release` on a tagged clone: what it refuses, and what it builds and signs."""

import os
import subprocess
import sys
import tarfile

import pytest

from tests.packaging.distributions import ROOT

pytestmark = pytest.mark.slow

VERSION = "7.8.9"
IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "maintainer"), ("EMAIL", "maintainer@example.org"))
}


def run(*command, cwd, check=True, **variables):
    environment = os.environ | IDENTITY | variables
    return subprocess.run(command, cwd=cwd, env=environment, check=check, capture_output=True, text=True)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Return a clone whose commit is ready for a release, without its tag. `.venv` is that of this checkout."""
    folder = tmp_path_factory.mktemp("release") / "clone"
    run("git", "clone", "--quiet", ROOT, folder, cwd=ROOT)
    # Changes that are not committed here belong to what is tested.
    for name in run("git", "ls-files", "--modified", "--others", "--exclude-standard", cwd=ROOT).stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes()) if (ROOT / name).exists() else (folder / name).unlink()
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(
        changelog.read_text().replace(
            "## [Unreleased]", f"## [{VERSION}] - 2026-12-01\n\n- Something new.\n\n## [Unreleased]", 1
        )
    )
    (folder / "docs" / "release-notes" / f"{VERSION}.md").write_text("# A release\n\nNothing to do.\n")
    chart = folder / "deploy" / "helm" / "conductor-app" / "Chart.yaml"
    chart.write_text(
        chart.read_text().replace("\nversion: 0.1.0\n", f"\nversion: {VERSION}\n").replace('"0.1.0"', f'"{VERSION}"')
    )
    run("git", "add", "--all", cwd=folder)
    run("git", "commit", "--quiet", "--no-verify", "--message", "Prepare a release", cwd=folder)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / ".git" / "info" / "exclude").write_text(".venv\n")
    return folder


@pytest.fixture
def tagged(clone):
    run("git", "tag", f"v{VERSION}", cwd=clone)
    yield clone
    run("git", "tag", "--delete", f"v{VERSION}", cwd=clone)
    run("git", "reset", "--quiet", "--hard", cwd=clone)


def release(folder, check=False, **variables):
    # What is skipped has tests or targets of its own.
    return run(
        sys.executable, "-m", "qa.release", cwd=folder, check=check, SKIP="licenses,upgrade,audit,sbom", **variables
    )


def test_a_commit_without_a_tag_is_refused(clone):
    refused = release(clone)

    assert refused.returncode == 1
    assert refused.stderr.strip() == "The commit needs one tag of the form v1.2.3: `git tag --sign v0.1.0`."


def test_a_checkout_with_changes_is_refused(tagged):
    (tagged / "README.md").write_text("something else")

    assert "has changes that are not committed" in release(tagged).stderr


@pytest.mark.parametrize(
    ("name", "present", "changed", "complaint"),
    [
        (
            "CHANGELOG.md",
            f"[{VERSION}] - 2026",
            f"[{VERSION}] 2026",
            f"needs the heading `## [{VERSION}] - YYYY-MM-DD`",
        ),
        ("deploy/helm/conductor-app/Chart.yaml", f'"{VERSION}"', '"1.0.0"', "Chart.yaml must be"),
    ],
)
def test_a_tag_on_a_commit_that_is_not_ready_is_refused(clone, name, present, changed, complaint):
    before = run("git", "rev-parse", "HEAD", cwd=clone).stdout.strip()
    (clone / name).write_text((clone / name).read_text().replace(present, changed))
    run("git", "commit", "--quiet", "--all", "--message", "Not ready", cwd=clone)
    run("git", "tag", f"v{VERSION}", cwd=clone)

    refused = release(clone)

    run("git", "tag", "--delete", f"v{VERSION}", cwd=clone)
    run("git", "reset", "--quiet", "--hard", before, cwd=clone)
    assert refused.returncode == 1
    assert complaint in refused.stderr


def test_a_release_has_everything_that_is_published_and_a_signature_that_others_verify(tagged, tmp_path):
    key, folder = tmp_path / "key", tmp_path / "release"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key, cwd=tmp_path)

    done = release(tagged, SIGNING_KEY=str(key), RELEASE_DIR=str(folder))

    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == [
        "SHA256SUMS",
        "SHA256SUMS.sig",
        f"conductor-app-{VERSION}-chart.tgz",
        f"conductor-app-{VERSION}-image-context.tar.gz",
        f"conductor_app-{VERSION}-py3-none-any.whl",
        f"conductor_app-{VERSION}.tar.gz",
        "release-notes.md",
    ]
    assert "WARNING" in done.stdout and "conductor-app" in done.stdout
    assert f"git push origin v{VERSION}" in done.stdout
    assert "- Something new." in (folder / "release-notes.md").read_text()
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=folder)
    signers = tmp_path / "signers"
    signers.write_text(f"maintainer {(tmp_path / 'key.pub').read_text()}")
    verify = ("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "maintainer", "-n", "conductor-app-release")
    with (folder / "SHA256SUMS").open() as sums:
        subprocess.run([*verify, "-s", folder / "SHA256SUMS.sig"], stdin=sums, check=True, capture_output=True)
    with tarfile.open(folder / f"conductor-app-{VERSION}-chart.tgz") as chart:
        assert "conductor-app/Chart.yaml" in chart.getnames()
    with tarfile.open(folder / f"conductor-app-{VERSION}-image-context.tar.gz") as context:
        assert {"deploy/docker/Dockerfile", "requirements/server.lock", "pyproject.toml"} <= set(context.getnames())
