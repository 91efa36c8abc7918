"""Only a step type's own module names the type or reads the state of its tasks."""

import ast
from collections.abc import Iterator

from conductor_app.core.definition import StepStructure
from conductor_app.core.step_types import STEP_TYPES
from tests.architecture.modules import APP, modules, relative, walk

HOMONYMS = {
    ("core/definition.py", "SIMPLE"),  # the type of a step that does not name one
    ("core/human_tasks.py", "TERMINATE"),  # a completion strategy of assignments
    ("runs/models.py", "HUMAN"),  # in an index; tables import no core
}
"""Literals that are spelled like a step type."""
TASK_STATE_READERS = {"core/snapshot.py", "core/masking.py"}


def other_modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that do not define a step type."""
    for path, tree in modules():
        name = relative(path)
        if not name.startswith(("core/step_types/", "migrations/")):
            yield name, tree


def test_no_other_module_names_a_step_type():
    found = [
        (name, node.value)
        for name, tree in other_modules()
        for node in walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in STEP_TYPES
    ]

    assert len(STEP_TYPES) > 25
    assert set(found) == HOMONYMS


def test_a_type_whose_inputs_name_objects_says_which_so_that_their_use_requires_a_permission():
    naming = [each for each in STEP_TYPES.values() if each.naming_inputs]

    assert naming
    assert [each for each in naming if type(each).named_objects is StepStructure.named_objects] == []


def test_only_step_types_read_the_state_of_a_type():
    own_keys = _keys_of_step_types()
    broken = [
        f"{name}:{node.lineno}: {node.value}"
        for name, tree in other_modules()
        if name.startswith("core/") or "/store" in name or "/commands" in name
        if name not in TASK_STATE_READERS
        for holder in walk(tree)
        for node in _keys_of_state(holder)
        if node.value in own_keys
    ]

    assert {"head", "forked", "ends"} <= own_keys
    assert broken == []


def _keys_of_step_types() -> set[str]:
    """Return the state keys that each step type declares."""
    return {
        each.target.id
        for path in (APP / "core" / "step_types").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and any("TaskState" in ast.unparse(base) for base in node.bases)
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def _keys_of_state(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the constants with which `….step_state` is read: by subscript, `get` or `in`."""
    keys: list[ast.expr] = []
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("step_state"):
        keys = [node.slice]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("step_state.get"):
        keys = node.args[:1]
    elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]).endswith("step_state"):
        keys = [node.left]
    yield from (key for key in keys if isinstance(key, ast.Constant))
