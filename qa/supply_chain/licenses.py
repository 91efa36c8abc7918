"""Entry point of `make licenses`: write requirements/LICENSES.md, and decide which licenses are accepted.

The versions come from the lock files, the licenses from the metadata of the installed packages.
"""

import re
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from qa.supply_chain.lock_files import ROOT, Pin, read

PAGE = ROOT / "requirements" / "LICENSES.md"
SHIPPED = ("server", "demo")
"""The lock files whose packages the commands of the Makefile and CONTRIBUTING install for an operator."""
BROWSER_ONLY = "sys_platform == 'emscripten'"
"""The marker of packages that only a Python in a browser installs."""

PERMISSIVE = {
    "0BSD", "Apache-2.0", "Artistic-1.0-Perl", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC", "MIT",
    "MIT-0", "PSF-2.0", "Zlib",
}  # fmt: skip
UNCHANGED_LIBRARIES = {"LGPL-3.0-only", "LGPL-3.0-or-later", "MPL-2.0"}
"""Licenses whose conditions apply to the library. It is installed as a package of its own and is not changed."""

NAMES = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache v2": "Apache-2.0",
    "bsd 3-clause or apache-2.0": "BSD-3-Clause OR Apache-2.0",
    "bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "lgplv3": "LGPL-3.0-only",
    "mit license": "MIT",
    "gnu lesser general public license v3 (lgplv3)": "LGPL-3.0-only",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "mpl 2.0": "MPL-2.0",
    "mpl 2.0 (mozilla public license)": "MPL-2.0",
    "mpl2": "MPL-2.0",
    "new bsd": "BSD-3-Clause",
    "python software foundation license": "PSF-2.0",
}
"""Names in metadata, in lower case, that are no SPDX expressions."""
READ_IN_THE_PACKAGE = {
    "cookiecutter": "BSD-3-Clause",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
    "pywin32": "PSF-2.0",
    "quickjs-ng": "MIT",
    "scriptworker": "MPL-2.0",
    "text-unidecode": "Artistic-1.0-Perl OR GPL-2.0-or-later",
}
"""Packages whose metadata names no license or does not say how several combine, or that Linux does not install."""


REDUCTIONS = [
    (r"\((\d)\)", r"\1"),
    (r"1 AND 1", "1"),
    (r"0 AND \d|\d AND 0", "0"),
    (r"(?<!AND )0 OR 0(?! AND)", "0"),
    (r"(?<!AND )\d OR \d(?! AND)", "1"),
]
"""The steps that evaluate an expression in which 1 is an accepted license and 0 another one. AND binds more tightly."""


def main() -> int:
    licenses = shipped_licenses()
    refused = [f"{pin.name}: {name}" for pin, name in licenses.items() if not is_accepted(name)]
    if refused:
        print("Licenses that are not accepted: " + "; ".join(refused), file=sys.stderr)
        return 1
    PAGE.write_text(render(licenses))
    print(f"Wrote {PAGE.relative_to(ROOT)}.")
    return 0


def shipped_licenses() -> dict[Pin, str]:
    """Return the license of each package of a server or the demo."""
    pins = {pin.name: pin for lock in SHIPPED for pin in read(lock) if BROWSER_ONLY not in pin.marker}
    return {pin: license_of(name) for name, pin in sorted(pins.items())}


def license_of(package: str) -> str:
    """Return the SPDX expression of an installed package, or the words of its metadata if they are no expression."""
    if package in READ_IN_THE_PACKAGE:
        return READ_IN_THE_PACKAGE[package]
    try:
        described: Any = metadata(package)
    except PackageNotFoundError:
        return "not installed"
    classifiers = [value for value in described.get_all("Classifier", []) if value.startswith("License :: OSI")]
    first_line = described.get("License", "").strip().partition("\n")[0]
    candidates = [
        described.get("License-Expression", ""),
        first_line,
        *(value.split(" :: ")[-1] for value in classifiers),
    ]
    return next(filter(None, map(spdx, candidates)), "; ".join(filter(None, candidates)) or "unknown")


def spdx(words: str) -> str | None:
    """Return the SPDX expression that a field of metadata stands for."""
    try:
        return canonicalize_license_expression(NAMES.get(words.lower(), words))
    except InvalidLicenseExpression:
        return None


def is_accepted(expression: str) -> bool:
    """Accept an expression if each part of an AND, and one part of an OR, is an accepted license."""
    accepted = PERMISSIVE | UNCHANGED_LIBRARIES
    text = re.sub(
        r"[\w.+-]+", lambda word: word[0] if word[0] in {"AND", "OR"} else str(int(word[0] in accepted)), expression
    )
    for pattern, result in REDUCTIONS * len(text):
        text = re.sub(pattern, result, text)
    return text == "1"


def render(licenses: Mapping[Pin, str]) -> str:
    rows = "\n".join(f"| {pin.name} | {pin.version} | {name} |" for pin, name in licenses.items())
    return f"""# Licenses of third-party packages

The packages that a server with all extras and the demo install, with the versions of `requirements/server.lock` and
`requirements/demo.lock`. `make licenses` writes this page; a test compares it with the lock files, and refuses licenses
that do not permit distribution beside code under the Apache License 2.0.

Libraries under the LGPL or the MPL are installed as packages of their own and are not changed. Where a package offers
several licenses (OR), this project uses the first one that it accepts.

| Package | Version | License |
|---|---|---|
{rows}
"""


if __name__ == "__main__":
    sys.exit(main())
