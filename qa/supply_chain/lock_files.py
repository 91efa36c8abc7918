"""The lock files: which exist, what each is compiled from, and how their lines are read."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "requirements"
SERVER_EXTRAS = ("server", "events", "traces", "s3", "azure", "gcs", "mcp", "ai")
EXTRAS: dict[str, tuple[str, ...]] = {
    "test": ("test",),
    "server": SERVER_EXTRAS,
    "demo": ("demo",),
    "run": ("server",),
}
"""The lock files of the application with their extras. `test` is compiled first and constrains the others."""
GROUPS = ("supply-chain", "docs", "deploy", "peers")
"""The lock files of separate environments. Each is compiled from the dependency group of this name."""
PIN = re.compile(r"^(?P<name>[\w.-]+)(\[[\w,-]+\])?==(?P<version>[^\s;]+)(?P<marker> ; [^\\]+)?", re.MULTILINE)


class Pin(NamedTuple):
    name: str
    version: str
    hashes: int
    marker: str = ""


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read(lock: str) -> list[Pin]:
    """Return the pins of a lock file."""
    text = (FOLDER / f"{lock}.lock").read_text()
    found = list(PIN.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [
        Pin(
            normalize(match["name"]),
            match["version"],
            text.count("--hash=sha256:", match.start(), end),
            (match["marker"] or "").strip(" ;\\"),
        )
        for match, end in zip(found, ends, strict=True)
    ]
