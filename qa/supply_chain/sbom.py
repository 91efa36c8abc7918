"""Entry point of `make sbom`: write var/sbom.cdx.json, the packages of a server with all extras, as CycloneDX.

The packages are installed from the lock file, with their hashes checked, into a temporary environment without other
packages. So the document has their licenses and dependencies, which a lock file does not have.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from qa.supply_chain.lock_files import FOLDER, ROOT

TARGET = ROOT / "var" / "sbom.cdx.json"
INSTALL = (
    "--disable-pip-version-check",
    "install",
    "--quiet",
    "--no-deps",
    "--only-binary",
    ":all:",
    "--require-hashes",
)


def main() -> None:
    TARGET.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder)
        venv.create(environment, with_pip=False)
        pip = [sys.executable, "-m", "pip", "--python", str(environment)]
        subprocess.run([*pip, *INSTALL, "--requirement", FOLDER / "server.lock"], check=True)
        subprocess.run(
            [
                sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml",
                "--output-reproducible", "--output-format", "JSON", "--output-file", TARGET, environment,
            ],
            check=True,
        )  # fmt: skip
    print(f"Wrote {TARGET.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
