"""Scopes for the tests of expressions."""

from conductor_app.core.expressions import MISSING


def scope_of(**roots):
    """Return a scope with these roots; a root that is not an object is a bare name."""

    def scope(root, key):
        document = roots.get(root.replace(" ", "_"), MISSING)
        if not isinstance(document, dict):
            return document if key == "" else MISSING
        return document.get(key, MISSING) if key else document

    return scope


ORDER = scope_of(
    workflow={
        "input": {"a": {"b": 1}, "k": "x", "name": "Bo", "none": None, "braces": "$${a} ${workflow.input.k}"},
        "status": "RUNNING",
        "env": {"REGION": "eu"},
    },
    pay={"output": {"x": 5, "list": [{"n": 1}, {"n": 2}], "m": {"a": 1, "b": "x"}, "f": 1.0, "t": True, "l": [1, "2"]}},
    my_task={"output": {"x": "mine"}},
    CPEWF_TASK_ID="t-1",
)
