"""Remove bindings of prompts to integrations and models that are deleted."""

from collections.abc import Callable

from ...models import IntegrationModel, Prompt
from .. import audit


def unbind_integration(name: str, by: str) -> list[str]:
    """Remove the bindings to an integration and its models. Returns the prompts that keep theirs, see `_unbind`.

    The name alone stays as a binding if another integration has a model of this name.
    """
    is_model = IntegrationModel.objects.filter(name=name).exclude(integration=name).exists()
    return _unbind(lambda bound: bound.startswith(f"{name}:") or (bound == name and not is_model), name, by)


def unbind_model(model: IntegrationModel, by: str) -> list[str]:
    """Remove the bindings to a model. Returns the prompts that keep theirs, see `_unbind`."""
    return _unbind(lambda bound: bound == str(model), str(model), by)


def _unbind(is_deleted: Callable[[str], bool], deleted: str, by: str) -> list[str]:
    """Remove bindings of all versions, except those of a version that would have none left.

    Such a version could be used with any model. Returns the names of the prompts with such versions.
    """
    kept = set()
    for row in Prompt.objects.only("name", "version", "integrations").select_for_update().order_by("name", "version"):
        left = [bound for bound in row.integrations if not is_deleted(bound)]
        if len(left) == len(row.integrations):
            continue
        if not left:
            kept.add(row.name)
            continue
        row.integrations = left
        row.save(update_fields=["integrations"])
        audit.record("prompt", f"{row.name}:{row.version}", "unbind", by, facts={"model": deleted})
    return sorted(kept)
