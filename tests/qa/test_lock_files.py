"""The lock files are complete, agree with pyproject.toml and with one another, and have hashes."""

import re
import tomllib
from importlib.metadata import distributions

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

from conductor_app.ai.wiring import PACKAGES
from qa.supply_chain.lock_files import EXTRAS, FOLDER, GROUPS, ROOT, normalize, read

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements(extra: str = "") -> list[Requirement]:
    """Return the requirements of the project or of an extra, including those of extras that it names."""
    project = PROJECT["project"]
    words = project["optional-dependencies"][extra] if extra else project["dependencies"]
    found = []
    for requirement in map(Requirement, words):
        if requirement.name == project["name"]:
            found += [each for inner in sorted(requirement.extras) for each in requirements(inner)]
        else:
            found.append(requirement)
    return found


@pytest.mark.parametrize("lock", EXTRAS)
def test_a_lock_file_has_each_requirement_in_a_permitted_version(lock):
    """After a change of pyproject.toml, `make lock` writes the lock files again."""
    pins = {pin.name: pin.version for pin in read(lock)}
    required = requirements() + [each for extra in EXTRAS[lock] for each in requirements(extra)]
    required += map(Requirement, PROJECT["build-system"]["requires"])

    wrong = [str(each) for each in required if not each.specifier.contains(pins.get(normalize(each.name), "0"))]

    assert wrong == []


@pytest.mark.parametrize("group", GROUPS)
def test_the_lock_file_of_a_group_has_each_requirement_in_a_permitted_version(group):
    pins = {pin.name: pin.version for pin in read(group)}
    required = map(Requirement, PROJECT["dependency-groups"][group])

    assert [str(each) for each in required if not each.specifier.contains(pins.get(normalize(each.name), "0"))] == []


def test_a_server_and_the_demo_run_the_versions_that_are_tested():
    tested = {(pin.name, pin.version) for pin in read("test")}

    others = {lock: {(pin.name, pin.version) for pin in read(lock)} - tested for lock in EXTRAS}

    assert {lock: found for lock, found in others.items() if found} == {}


@pytest.mark.parametrize("lock", [*EXTRAS, *GROUPS])
def test_every_package_has_hashes(lock):
    assert [pin.name for pin in read(lock) if not pin.hashes] == []


@pytest.mark.parametrize("lock", [*EXTRAS, *GROUPS])
def test_a_lock_file_names_no_index(lock):
    """The hashes say which files are installed. Where they come from is a matter of each machine."""
    lines = (FOLDER / f"{lock}.lock").read_text().splitlines()

    assert [line for line in lines if re.search(r"://|^-|^ +--(?!hash=sha256:[0-9a-f]{64}( \\)?$)", line)] == []


def test_a_server_has_no_package_of_the_tests():
    assert {"pytest", "ruff", "mypy", "playwright"} & {pin.name for pin in read("run") + read("server")} == set()


def test_the_tests_run_with_the_versions_of_the_lock_file():
    installed = {normalize(each.metadata["Name"]): each.version for each in distributions()}

    pins = [pin for pin in read("test") if not pin.marker or Marker(pin.marker).evaluate()]

    assert [pin for pin in pins if installed.get(pin.name) != pin.version] == []


def test_a_server_executes_ai_tasks_only_with_every_package_of_their_extra():
    assert {requirement.name for requirement in requirements("ai")} == set(PACKAGES)
