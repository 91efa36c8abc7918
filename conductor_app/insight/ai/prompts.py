"""Queries about prompts."""

from django.db.models import Exists, OuterRef, QuerySet

from ...models import Prompt


def newest_prompts() -> QuerySet[Prompt]:
    """Return the newest version of each prompt, by name."""
    newer = Prompt.objects.filter(name=OuterRef("name"), version__gt=OuterRef("version"))
    return Prompt.objects.filter(~Exists(newer)).order_by("name")


def versions_of(name: str) -> QuerySet[Prompt]:
    """Return all versions of a prompt, newest first."""
    return Prompt.objects.filter(name=name).order_by("-version")


def prompt_names() -> frozenset[str]:
    """Return the names of all prompts."""
    return frozenset(Prompt.objects.order_by().values_list("name", flat=True).distinct())
