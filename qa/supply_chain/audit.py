"""Entry point of `make audit`: compare the packages of a server with the database of known vulnerabilities.

The exit status is 1 only if a vulnerability is known. Without a network, the audit says so and succeeds.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qa.supply_chain.lock_files import Pin, read

COMMAND = (sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off", "--format",
           "json", "--desc", "off", "--timeout", "5")  # fmt: skip
LOCK = "server"
PROBE_SECONDS, AUDIT_SECONDS = 15, 120
UNREACHABLE = "The vulnerability database could not be reached, so no package was audited."


def main(command: Sequence[str] = COMMAND) -> int:
    """Audit one package first, so that a missing network costs one request and not one for each package."""
    pins = read(LOCK)
    probe = audit(command, pins[:1], PROBE_SECONDS)
    if not any("vulns" in package for package in probe):
        print(UNREACHABLE)
        return 0
    return report(audit(command, pins, AUDIT_SECONDS))


def audit(command: Sequence[str], pins: Sequence[Pin], seconds: int) -> list[dict[str, Any]]:
    """Return the result of each package, or nothing if the database does not respond in time."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in pins))
        try:
            done = subprocess.run(
                [*command, "--requirement", str(requirements)], capture_output=True, timeout=seconds, check=False
            )
            return json.loads(done.stdout)["dependencies"]
        except (subprocess.TimeoutExpired, ValueError):
            return []


def report(packages: Sequence[dict[str, Any]]) -> int:
    """Print known vulnerabilities and packages without a result. Return the exit status."""
    if not packages:
        print(UNREACHABLE)
        return 0
    vulnerable = [package for package in packages if package.get("vulns")]
    for package in vulnerable:
        for vulnerability in package["vulns"]:
            fixed = ", ".join(vulnerability["fix_versions"]) or "no version"
            print(f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in {fixed}")
    skipped = [package["name"] for package in packages if "vulns" not in package]
    if skipped:
        print(f"Not audited: {', '.join(skipped)}")
    print(f"{len(packages) - len(skipped)} packages audited, {len(vulnerable)} of them with known vulnerabilities.")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
