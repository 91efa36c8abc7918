"""The bundled editor script matches its sources."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "static" / "ops"
SCRIPTS = ("editor.js", "editor-chunk.js", "editor-more.js")
BUILT = (*SCRIPTS, "editor.LICENSES.txt")


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=240
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Build the sources and return the output folder."""
    if not shutil.which("npm"):
        pytest.skip("npm is not here: what is committed cannot be built again")
    sources, out = tmp_path_factory.mktemp("src") / "src", tmp_path_factory.mktemp("built")
    shutil.copytree(STATIC / "src", sources, ignore=shutil.ignore_patterns("node_modules"))
    fetched = run(sources, "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0")
    if fetched.returncode:
        pytest.skip(f"the packages cannot be fetched: {fetched.stderr[-200:]}")
    made = run(sources, "node", "build.mjs", OUT=str(out))
    assert made.returncode == 0, made.stderr
    return out


@pytest.mark.parametrize("name", BUILT)
def test_the_committed_bundle_matches_its_sources(built, name):
    assert (built / name).read_bytes() == (STATIC / name).read_bytes(), (
        "run `npm ci && npm run build` in static/ops/src"
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_compressed_script_is_the_script(name):
    if not shutil.which("node"):
        pytest.skip("Node.js is not here: nothing else decompresses Brotli")
    decompress = "process.stdout.write(zlib.brotliDecompressSync(fs.readFileSync(process.argv[1])))"
    shown = subprocess.run(["node", "-e", decompress, STATIC / f"{name}.br"], capture_output=True, check=True)

    assert shown.stdout == (STATIC / name).read_bytes()


def test_every_bundled_package_has_its_license():
    licences = (STATIC / "editor.LICENSES.txt").read_text()

    assert "@codemirror/view" in licences and licences.count("Permission is hereby granted") >= 10
