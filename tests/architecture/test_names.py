"""Names are standard terms: no literary words, no bare participles, one public class per name.

docs/reference/glossary.md defines the terms. The lists here hold words that the glossary replaced.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from conductor_app.settings import table as conf_table
from tests.architecture.modules import APP, modules, relative

BANNED_WORDS = {
    "tidings", "fates", "fate", "farewell", "ear", "ears", "rubbish", "shelf", "household", "doorstep", "standstill",
    "warehouse", "deeds", "deed", "solo", "alone", "upkeep", "beats", "bell", "chance", "lingering", "memo", "nobody",
    "somebody", "whoever", "tally", "tallies", "usual", "moments",
}  # fmt: skip
"""Words that no module, class or function name contains."""
PARTICIPLES = {
    "told", "shown", "heard", "said", "given", "kept", "written", "found", "seen", "sent", "taken", "begun", "held",
    "known", "made", "drawn", "hidden", "spoken", "sought", "gone", "done", "chosen", "built",
}  # fmt: skip
BRITISH = re.compile(r"colour|grey|behaviour|cancelled|normalis|prioritis|serialis|favourite|neighbour|catalogue")
ADJECTIVES = {"need", "feed", "seed", "speed", "exceed", "embed"}
BACKENDS = {"db/postgresql/base.py", "db/sqlite/base.py"}
"""Modules of database backends, whose names and classes Django prescribes."""
TWINS = [
    {"core/snapshot.py", "runs/models.py"},
    {"taskcluster/core/snapshot.py", "taskcluster/models.py"},
    {"taskcluster/core/decisions.py", "taskcluster/models.py"},
    {"core/effects.py", "taskcluster/core/snapshot.py"},
]
"""Pairs of modules that define the same terms: the core's values and the tables, runs and standalone tasks."""


def is_generated(path: Path) -> bool:
    return "migrations" in path.parts or "commands" in path.parent.parts[-1:]


def definitions() -> Iterator[tuple[Path, ast.ClassDef | ast.FunctionDef]]:
    """Yield every top-level class and function."""
    for path, tree in modules():
        if is_generated(path):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield path, node


def words(name: str) -> list[str]:
    """Split a snake_case or CamelCase name: `SoloQuerySet` → solo, query, set."""
    return re.findall(r"[a-z]+|[0-9]+", re.sub(r"([A-Z])", r"_\1", name).lower())


def test_names_of_modules_classes_and_functions_contain_no_banned_word():
    named = [(path, path.stem) for path, _ in modules() if not is_generated(path)]
    named += [(path, node.name) for path, node in definitions()]

    broken = [f"{relative(path)}: {name}" for path, name in named if BANNED_WORDS & set(words(name))]

    assert broken == []


def test_names_have_us_spelling():
    named = [(path, path.stem) for path, _ in modules() if not is_generated(path)]
    named += [(path, node.name) for path, node in definitions()]
    named += [(APP / "settings" / "table.py", setting) for setting in conf_table.DEFAULTS]

    assert [f"{relative(path)}: {name}" for path, name in named if BRITISH.search(name.lower())] == []


@pytest.mark.parametrize("name", ["told", "_heard", "sorted_", "refused"])
def test_a_bare_participle_is_recognized(name):
    assert is_participle(name)


@pytest.mark.parametrize("name", ["told_parent", "need", "notify", "read"])
def test_other_names_are_not_participles(name):
    assert not is_participle(name)


def is_participle(name: str) -> bool:
    plain = name.strip("_")
    ends = plain.endswith("ed") and "_" not in plain and plain not in ADJECTIVES
    return plain in PARTICIPLES or ends


def test_functions_are_named_by_verbs_not_by_bare_participles():
    functions = ((path, node) for path, node in definitions() if isinstance(node, ast.FunctionDef))

    assert [f"{relative(path)}: {node.name}" for path, node in functions if is_participle(node.name)] == []


def test_a_public_class_name_is_unique():
    places: dict[str, set[str]] = defaultdict(set)
    for path, node in definitions():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and relative(path) not in BACKENDS:
            places[node.name].add(relative(path))

    assert {name: sorted(at) for name, at in places.items() if len(at) > 1 and at not in TWINS} == {}
