"""The definitions of a Django project: files in the folders `workflows` of its apps, and those of its functions.

They are compared with the database, and applied to it, like a folder of definitions in Git. A task whose function has
the decorator `worker_task` needs no file; a file of its name takes precedence.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from ..access.authentication import acting_as
from ..core.errors import Invalid
from ..definitions.sources.commands import AppliedItem, apply_plan
from ..definitions.sources.kinds import TaskKind
from ..definitions.sources.operator_kinds import NAME_BY_PLURAL, find_kind, source_kinds
from ..definitions.sources.plan import Action, InvalidDocument, SourceFolder, SourceItem, SourcePlan, plan_source
from ..schedules.serializers import parse_schedule
from ..tools.remote.files import read_folder
from .tasks import find_tasks

FOLDER = "workflows"
LABEL = "application"
"""The name of the source in the records of what was applied."""
KINDS = source_kinds(parse_schedule)


@dataclass(frozen=True, slots=True)
class ProjectDocument:
    """A definition of the project, and where it is: a file with its line, or a function."""

    value: dict[str, Any]
    place: str


@dataclass(frozen=True)
class ProjectPlan:
    """The plan of the definitions of the project, with their places."""

    plan: SourcePlan
    documents: tuple[ProjectDocument, ...]

    @property
    def problems(self) -> list[str]:
        """Return why the plan cannot be applied, one line for each reason."""
        lines = []
        found: list[InvalidDocument | SourceItem] = [*self.plan.invalid, *self.plan.items]
        for each in found:
            place = f"{self.documents[each.position].place}: " if each.position >= 0 else ""
            errors = [f"{place}{error.path}: {error.message}" for error in each.validation_errors]
            lines += errors or ([f"{place}{each.name}: {each.problem}"] if each.problem else [])
        return lines

    @property
    def differences(self) -> list[str]:
        """Return what is different in the database, one line for each definition."""
        return [describe(item) for item in self.plan.items if item.changes_something and item.action != Action.ADOPT]

    def apply(self) -> Iterator[AppliedItem]:
        """Apply the plan, one definition after another.

        Raises:
            Conflict: when the plan has a problem. Nothing is applied then.
        """
        with acting_as(None):
            yield from apply_plan(self.plan)


def describe(item: SourceItem) -> str:
    """Return what the plan does with a definition, such as `update workflow order: tasks`."""
    version = f", version {item.version}" if item.version else ""
    changes = f": {'; '.join(item.changes[:5])}" if item.changes else ""
    return f"{item.action} {NAME_BY_PLURAL[item.kind.plural]} {item.name}{version}{changes}"


def plan_project(by: str, *, prunes: bool = False, overwrites: bool = False) -> ProjectPlan:
    """Compare the definitions of the project with the database.

    `prunes`: delete what was applied before and is no longer in the project. `overwrites`: also change what was edited
    in the database since.

    Raises:
        FolderError: when a file cannot be read.
        Invalid: when there are too many definitions, or pruning would delete all.
    """
    documents = project_documents()
    source = SourceFolder(LABEL, [each.value for each in documents], prunes=prunes, overwrites=overwrites)
    with acting_as(None):
        return ProjectPlan(plan_source(source, KINDS, by), documents)


def project_documents() -> tuple[ProjectDocument, ...]:
    """Return the definitions in the files of the apps, and those of the functions without a file.

    Raises:
        FolderError: when a file cannot be read.
    """
    found = [
        ProjectDocument(document.value, document.place())
        for folder in _folders()
        for document in read_folder(str(folder))
    ]
    autodiscover_modules("tasks")
    with_file = {each.value.get("name") for each in found if _is_task(each.value)}
    for task in {task.name: task for task in find_tasks().values()}.values():
        if task.name not in with_file:
            found.append(ProjectDocument({"kind": "task", **task.definition}, task.place))
    return tuple(found)


def _folders() -> list[Path]:
    folders = (Path(config.path) / FOLDER for config in apps.get_app_configs() if config.name != "conductor_app")
    return [folder for folder in folders if folder.is_dir() and not (folder / "__init__.py").exists()]


def _is_task(document: dict[str, Any]) -> bool:
    try:
        return isinstance(find_kind(document, KINDS)[0], TaskKind)
    except Invalid:
        return False
