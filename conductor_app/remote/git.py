"""The commit and the name of the Git repository that contains a folder."""

import os
import subprocess
from pathlib import Path

COMMIT_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA")
"""The variables with the commit in jobs of GitHub and GitLab."""


def find_commit(folder: str) -> str:
    """Return the commit of a folder, with `-dirty` if it has uncommitted changes; empty outside of a repository."""
    for name in COMMIT_VARIABLES:
        if commit := os.environ.get(name, ""):
            return commit
    commit = _execute(folder, "rev-parse", "--short=12", "HEAD")
    if commit and _execute(folder, "status", "--porcelain", "--", "."):
        return f"{commit}-dirty"
    return commit


def _execute(folder: str, *arguments: str) -> str:
    path = Path(folder)
    try:
        done = subprocess.run(
            ["git", "-C", str(path if path.is_dir() else path.parent), *arguments],
            capture_output=True,
            check=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
