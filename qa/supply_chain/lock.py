"""Entry point of `make lock`: compile the lock files from pyproject.toml, with the hash of each file of each package.

Versions in the lock files stay, unless pyproject.toml excludes them. `--upgrade all` upgrades all packages, and
`--upgrade NAME,NAME` some.
"""

import argparse
import subprocess
import sys
import tomllib

from qa.supply_chain.lock_files import EXTRAS, FOLDER, GROUPS, ROOT

# `--universal` resolves for all platforms. The index that the machine uses, which may be a mirror, is not written.
COMPILE = (
    sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--python-version",
    "3.11", "--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", default="", help="`all`, or names of packages, separated by commas")
    upgrade = parser.parse_args().upgrade
    upgrades = (
        ["--upgrade"] if upgrade == "all" else [f"--upgrade-package={name}" for name in upgrade.split(",") if name]
    )

    everything = FOLDER / "test.lock"
    for name, extras in EXTRAS.items():
        constraint = [] if name == "test" else [f"--constraint={everything}"]
        compile_lock(name, *(f"--extra={extra}" for extra in extras), *upgrades, *constraint, "pyproject.toml", "-")
    for name in GROUPS:
        compile_lock(name, f"--group={name}", *upgrades)


def compile_lock(name: str, *arguments: str) -> None:
    """Write a lock file. Its current contents are the versions that uv prefers."""
    subprocess.run(
        [*COMPILE, f"--output-file={FOLDER / name}.lock", *arguments],
        cwd=ROOT,
        input="\n".join(build_requirements()).encode(),
        stdout=subprocess.DEVNULL,
        check=True,
    )


def build_requirements() -> list[str]:
    """Return the packages that an editable installation of this project requires."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["build-system"]["requires"]


if __name__ == "__main__":
    main()
