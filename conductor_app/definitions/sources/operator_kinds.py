"""Kinds of what operators set up, limits of queues, alerts and roles, and the table of all kinds."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from django.contrib.auth.models import Group

from ...access.authentication import Actor, missing_permission_error
from ...access.commands import users as roles
from ...access.models import AuditEntry
from ...access.permissions import (
    READ,
    RIGHT_BY_PERMISSION,
    SYSTEM_ROLES,
    TASK_DEF,
    UPDATE,
    WORKFLOW,
    other_database_of_users,
)
from ...alerts import commands as alerts
from ...alerts.models import Alert, AlertTarget, SavedView
from ...alerts.queries import subject_of, views_without_user
from ...bulk import selections
from ...core.alerts import BUDGET
from ...core.document.fields import normalize_task
from ...core.document.json_positions import KIND_NAMES, recognize_kind
from ...core.errors import Forbidden, Invalid
from ...core.validation.checks import LIMIT_FIELDS, read_alert, read_queue_limit, read_role
from .. import commands as definition_commands
from ..models import AppliedDefinition, TaskDefinition
from .kinds import (
    DefinitionKind,
    Document,
    FormTemplateKind,
    HandlerKind,
    LoadedObject,
    PlanContext,
    PlannedObject,
    ScheduleKind,
    SchemaKind,
    TaskKind,
    WorkflowKind,
    describe_elements,
    require_none,
)

NAME_BY_PLURAL = {plural: name for name, plural in KIND_NAMES.items()}
VIEW_OWNER = "Git"
MAX_REMOVALS = 100
"""The removals of alerts that are searched for those of a view."""


class QueueLimitKind(DefinitionKind):
    """Limits of queues whose task definitions are not in a folder: workers or clients register them."""

    label, plural, audit_type = "queue limit", "queue-limits", "task_definition"
    target_type, model = TASK_DEF, TaskDefinition

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        document, validation_errors = read_queue_limit(given)
        require_none(validation_errors)
        return PlannedObject(document["name"], document)

    def stored(self, row: TaskDefinition) -> Document:
        read = normalize_task(row.document)
        return {"name": row.name, **{name: read.get(name) or 0 for name in LIMIT_FIELDS}}

    def find_problem(self, wanted: PlannedObject, planned: Collection[tuple[str, str]]) -> str:
        tasks = TaskKind.plural
        if (tasks, wanted.name) in planned or _is_applied(tasks, wanted.name):
            return f"The task definition {wanted.name} is in a folder. State its limits there."
        if not TaskDefinition.objects.filter(name=wanted.name).exists():
            return f"There is no task definition {wanted.name}. Register it, or add a document of the kind task."
        return ""

    def refuse(self, actor: Actor, access: str, name: str) -> Forbidden | None:
        # A limit is a field of a task definition, which exists before and after.
        return super().refuse(actor, access if access == READ else UPDATE, name)

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        self._save_limits(wanted.name, wanted.document, context)

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        if not _is_applied(TaskKind.plural, name):
            self._save_limits(name, read_queue_limit({"name": name})[0], context)

    def _save_limits(self, name: str, limits: Document, context: PlanContext) -> None:
        row = TaskDefinition.objects.filter(name=name).first()
        if row is None:
            raise Invalid(f"There is no task definition {name}.")
        document = {**row.document, **{field: limits[field] for field in LIMIT_FIELDS}}
        definition_commands.save_task(document, context.by, must_exist=True, reason=context.reason)


def _is_applied(plural: str, name: str) -> bool:
    return AppliedDefinition.objects.filter(kind=plural, name=name).exists()


class AlertKind(DefinitionKind):
    """Alerts: a shared view of runs with its conditions. The view belongs to VIEW_OWNER."""

    label, plural, audit_type, model = "alert", "alerts", "view", SavedView

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        document, validation_errors = read_alert(given)
        require_none(validation_errors)
        document["selection"] = selections.clean_selection(document["selection"])
        selections.selected_runs(document["selection"])
        return PlannedObject(document["name"].strip(), document)

    def load(self, names: Collection[str]) -> Iterator[LoadedObject]:
        rows = list(self._views(names).prefetch_related("alerts__targets"))
        views = _last_changes("view", [row.pk for row in rows])
        changes = _last_changes("alert", [alert.pk for row in rows for alert in row.alerts.all()])
        removals = _last_removals() if rows else {}
        for row in rows:
            entries = [views.get(str(row.pk)), *(changes.get(str(alert.pk)) for alert in row.alerts.all())]
            entries.append(removals.get(row.name))
            yield LoadedObject(row.name, self.stored(row), *_newest(entries))

    def stored(self, row: SavedView) -> Document:
        found = sorted(row.alerts.all(), key=lambda alert: alert.pk)
        return {"name": row.name, "selection": row.selection, "conditions": [_condition(alert) for alert in found]}

    def comparable(self, document: Document) -> Document:
        conditions = [{**each, "targets": sorted(each["targets"])} for each in document["conditions"]]
        return {**document, "conditions": sorted(conditions, key=repr)}

    def lock(self, name: str) -> None:
        list(self._views([name]).select_for_update().values_list("pk"))

    def find_problem(self, wanted: PlannedObject, planned: Collection[tuple[str, str]]) -> str:
        names = {name for condition in wanted.document["conditions"] for name in condition["targets"]}
        known = set(AlertTarget.objects.filter(name__in=names).values_list("name", flat=True))
        if missing := sorted(names - known):
            return f"There is no alert target {missing[0]!r}. Create it on the page Alerts: it has secrets."
        for budget in filter(None, (condition.get("budget") for condition in wanted.document["conditions"])):
            if not subject_of(BUDGET).exists(budget):
                words = " ".join(filter(None, (budget["scope"], budget["name"], "per", budget["period"])))
                return f"There is no budget {words}. Create it on the page Budgets."
        return ""

    def refuse(self, actor: Actor, access: str, name: str) -> Forbidden | None:
        right = (READ if access == READ else UPDATE, WORKFLOW)
        return None if actor.permissions.allows_all(right) else missing_permission_error(actor, [right], {})

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        former = self._views([wanted.name]).first()
        view = alerts.save_view(
            wanted.name,
            wanted.document["selection"],
            context.by,
            is_shared=True,
            is_tile=former is not None and former.is_tile,
            owner=VIEW_OWNER,
            reason=context.reason,
        )
        missing = list(self.comparable(wanted.document)["conditions"])
        for alert in view.alerts.prefetch_related("targets"):
            if (condition := _condition(alert)) in missing:
                # It keeps its incident.
                missing.remove(condition)
            else:
                alerts.remove_alert(alert.pk, context.by, context.reason)
        for condition in missing:
            _save_condition(view, condition, context)

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        for view in self._views([name]):
            alerts.remove_view(view.pk, context.by, owner=VIEW_OWNER, reason=context.reason)

    def _views(self, names: Collection[str]) -> Any:
        return views_without_user(VIEW_OWNER).filter(name__in=names)


def _last_removals() -> dict[str, AuditEntry]:
    """Return the last audit entry of a removed alert by the name of its view."""
    entries = AuditEntry.objects.filter(object_type="alert", action="remove").order_by("-at", "-pk")[:MAX_REMOVALS]
    return {entry.facts["view"]: entry for entry in reversed(entries) if "view" in entry.facts}


def _condition(alert: Alert) -> Document:
    return {
        "type": alert.kind,
        "threshold": alert.threshold,
        "windowMinutes": alert.window_minutes,
        "repeatMinutes": alert.repeat_minutes,
        "targets": sorted(target.name for target in alert.targets.all()),
        **({"budget": alert.budget} if alert.budget else {}),
    }


def _save_condition(view: SavedView, condition: Document, context: PlanContext) -> None:
    targets = AlertTarget.objects.filter(name__in=condition["targets"]).values_list("pk", flat=True)
    alerts.save_alert(
        view,
        condition["type"],
        condition["threshold"],
        condition["windowMinutes"],
        condition["repeatMinutes"],
        context.by,
        targets=list(targets),
        budget=condition.get("budget"),
        reason=context.reason,
    )


class CustomRoleKind(DefinitionKind):
    """Roles other than the built-in ones. Every caller may read them; administrators change them."""

    label, plural, audit_type, model = "role", "roles", "role", Group

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        document, validation_errors = read_role(given)
        require_none(validation_errors)
        name = document["name"] = document["name"].strip()
        roles.check_role(name, document["permissions"])
        if other := other_database_of_users():
            raise Invalid(f"Roles are for users, who are in another database ({other!r}).")
        if name in SYSTEM_ROLES:
            raise Invalid(f"The role {name} is built in and cannot be changed.")
        return PlannedObject(name, document)

    def load(self, names: Collection[str]) -> Iterator[LoadedObject]:
        rows = Group.objects.filter(profile__role__in=names).select_related("profile")
        changes = _last_changes(self.audit_type, names)
        for row in rows.prefetch_related("permissions__content_type"):
            document = self.stored(row)
            yield LoadedObject(document["name"], document, *_newest([changes.get(document["name"])]))

    def stored(self, row: Any) -> Document:
        permissions = (f"{each.content_type.app_label}.{each.codename}" for each in row.permissions.all())
        rights = (RIGHT_BY_PERMISSION[each] for each in permissions if each in RIGHT_BY_PERMISSION)
        return {"name": row.profile.role, "permissions": sorted("_".join(right) for right in rights)}

    def changes(self, current: Document, wanted: Document) -> list[str]:
        return describe_elements("permission", current["permissions"], wanted["permissions"])

    def lock(self, name: str) -> None:
        list(Group.objects.select_for_update().filter(profile__role=name).values_list("pk"))

    def refuse(self, actor: Actor, access: str, name: str) -> Forbidden | None:
        if access == READ or actor.permissions.is_admin:
            return None
        return Forbidden(f"{actor.name} lacks the role ADMIN.", code="FORBIDDEN")

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        command = roles.update_role if replaces else roles.create_role
        command(wanted.name, wanted.document["permissions"], context.by, context.reason)

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        roles.delete_role(name, context.by, context.reason)


def _last_changes(object_type: str, ids: Iterable[Any]) -> dict[str, AuditEntry]:
    """Return the last audit entry of each object, by id."""
    entries = AuditEntry.objects.filter(object_type=object_type, object_id__in=[str(id) for id in ids])
    return {entry.object_id: entry for entry in entries.order_by("at", "pk")}


def _newest(entries: Iterable[AuditEntry | None]) -> tuple[str, int]:
    """Return who has made the newest of these changes, and when."""
    known = [entry for entry in entries if entry is not None]
    newest = max(known, key=lambda entry: (entry.at, entry.pk), default=None)
    return (newest.actor, newest.at) if newest else ("", 0)


def source_kinds(parse_schedule: Callable[[Document], Document]) -> tuple[DefinitionKind, ...]:
    """Return the kinds in the order in which they are applied: what a definition uses comes before it."""
    return (
        SchemaKind(), TaskKind(), QueueLimitKind(), FormTemplateKind(), WorkflowKind(), HandlerKind(),
        ScheduleKind(parse_schedule), AlertKind(), CustomRoleKind(),
    )  # fmt: skip


def find_kind(document: Document, kinds: Sequence[DefinitionKind]) -> tuple[DefinitionKind, Document]:
    """Return the kind of a document, stated or recognized, and the document without the field `kind`."""
    name, given = recognize_kind(document), document.get("kind")
    if name not in KIND_NAMES:
        known = ", ".join(KIND_NAMES)
        what = f"The kind {given!r:.60} is unknown" if given is not None else "The kind of the document is unclear"
        raise Invalid(f"{what}. State one of them as `kind`: {known}.")
    fields = {name: value for name, value in document.items() if name != "kind"}
    return next(kind for kind in kinds if kind.plural == KIND_NAMES[name]), fields
