"""Pages of bulk operations: their list, the form that plans one, and the progress and results of one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict, StreamingHttpResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.models import AuditEntry
from ...access.visibility import may, visible
from ...core.errors import Conflict, Invalid, NotFound, RequestRefused
from ...core.states import BULK, PAUSED, RUNNING
from ...db.fields import user_key
from ...definitions.models import WorkflowDefinition
from ...explanations.cause import failure_reasons
from ...failures.models import FailureGroup
from ...runs.commands.repair import upgrade_obstacles
from ...runs.models import Run
from ...runs.pages.actions import RUN_ACTIONS
from ...runs.pages.filters import LIST_FIELDS, selection_parameters
from ...runs.queries.recent import run_keys
from ...utils.formatting import LazyText
from ...web.badges import format_count, render_badge, render_pill
from ...web.documents import download_rows
from ...web.pages import ObjectPage, Page, get_or_404, require_permission_on_any, show_refusal
from .. import commands, selections
from ..commands import ACTIONS, LABELLING, BulkRequest
from ..models import BulkItem, BulkOperation
from ..queries import (
    ACTION_LABELS,
    FAILED_AGAIN,
    REOPENING_ACTIONS,
    BulkOutcome,
    RunResult,
    SelectionCount,
    allows_action,
    count_selection,
    failed_again,
    first_runs,
    frequent_answers,
    outcome_of,
    outcomes_of,
    run_results,
    selected_workflow,
    visible_operations,
)

PERMISSION = "conductor.change_run"
MAX_CHECKED_RUNS = 50
MAX_REASONS = 10
MAX_CANARY_SIZE = 10
MAX_NAMED = 3
MAX_GROWTH, MAX_COUNT_DIGITS = 1.1, 9
FAILURE_WORKFLOW_COLUMNS = ("name", "version", "failure_workflow")
NUMBER_FIELDS = ("version", "failure_group", "least_ms", "most_ms", *selections.MOMENTS)
ACTION_DESCRIPTIONS = {name: action.sentence for name, action in RUN_ACTIONS.items()} | {
    "rerun": gettext_lazy("Restarts each run from the beginning with the same id and input."),
    "upgrade": gettext_lazy(
        "Continues each active run with the newest version of its definition. Runs that cannot be upgraded are "
        "rejected with the reason."
    ),
    "label": gettext_lazy("Adds these labels to each run. Execution is not affected."),
    "unlabel": gettext_lazy("Removes these labels from each run. Execution is not affected."),
}
ACTION_OPTIONS = {name: action.options for name, action in RUN_ACTIONS.items()} | {
    "restart": (("latest", gettext_lazy("Use the newest version of the definition")),),
}


def parse_selection(form_data: QueryDict) -> dict[str, Any]:
    """Parse the selection of an address or a form."""
    found: dict[str, Any] = {}
    for name in selections.FILTERS:
        values = [value for value in form_data.getlist(name) if value]
        if name in LIST_FIELDS:
            found[name] = [part for value in values for part in value.split(",") if part]
        elif values:
            found[name] = _parse_number(values[0], name) if name in NUMBER_FIELDS else values[0].replace("\0", "")
    return selections.clean_selection(found)


class BulkPlanPage(ObjectPage):
    """Page that plans a bulk operation."""

    name, template, permission = "bulk_plan", "ops/bulk/plan.html", "conductor.view_run"
    route = "bulk/plan/"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return self._plan_context(request, request.GET)

    def handle_post(self, request: HttpRequest) -> HttpResponse | dict[str, Any]:
        require_permission_on_any(request, PERMISSION)
        try:
            _require_planned_count(request.POST)
            id = commands.start(_parse_form(request.POST), request.user.get_username())
        except RequestRefused as refused:
            show_refusal(request, refused)
            return self._plan_context(request, request.POST)
        if BulkOperation.objects.get(pk=id).needs_approval:
            messages.success(request, _("Saved. The operation starts when another operator approves it."))
        else:
            messages.success(request, _("Started. It continues in the background."))
        return HttpResponseRedirect(reverse("admin:bulk_operation", args=[id]))

    def _plan_context(self, request: HttpRequest, form_data: QueryDict) -> dict[str, Any]:
        named = form_data.get("action", "retry")
        action = named if named in ACTIONS else "retry"
        context: dict[str, Any] = {
            "title": _("New bulk operation"),
            "action": action,
            "actions": [(name, ACTION_LABELS[name]) for name in ACTIONS],
            "label": ACTION_LABELS[action],
            "sentence": ACTION_DESCRIPTIONS.get(action, ""),
            "options": ACTION_OPTIONS.get(action, ()),
            "is_labelling": action in LABELLING,
            "given": form_data,
            "may_act": may(request.user, PERMISSION),
            "permission": PERMISSION,
        }
        try:
            selection = parse_selection(form_data)
            found = count_selection(selection)
        except RequestRefused as refused:
            return context | {"refused": refused.message}
        if action == "terminate":
            context["options"] = _failure_workflow_option([name for name, _count in found.by_definition])
        fields = [(name, ",".join(value) if name in LIST_FIELDS else str(value)) for name, value in selection.items()]
        return context | {
            "words": selections.describe_selection(selection),
            "selected": found,
            "by_status": [(status, count, allows_action(action, status)) for status, count in found.by_status],
            "narrower": _narrower_address(fields, found, action),
            "runs": _planned_runs(request, selection, action),
            "left_out": form_data.getlist("exclude"),
            "fields": fields,
            "needs_approval": commands.needs_approval(selection),
            "canary_size": "0" if "ids" in selection else str(default_canary_size(found.total)),
            "moves": _upgrade_summary(selection) if action == "upgrade" and "check" in form_data else None,
        }


def _narrower_address(fields: list[tuple[str, str]], found: SelectionCount, action: str) -> str:
    """Return the address of the plan for the runs whose state allows the action, if that of others does not."""
    allowed = [status for status, _count in found.by_status if allows_action(action, status)]
    if not allowed or len(allowed) == len(found.by_status):
        return ""
    return reverse("admin:bulk_plan", query=dict(fields) | {"status": ",".join(allowed), "action": action})


def _planned_runs(request: HttpRequest, selection: dict[str, Any], action: str) -> list[dict[str, Any]]:
    """Return the first runs with the failed task and its reason, and why the action is not possible, if it is not."""
    runs = first_runs(selection)
    reasons = failure_reasons(runs)
    rows = []
    for run in runs:
        obstacle = "" if allows_action(action, run.status) else _("not possible in this state")
        obstacle = obstacle if may(request.user, PERMISSION, run) else _("you may not change it")
        rows.append({"run": run, "failure": reasons.get(run.pk), "obstacle": obstacle})
    return rows


def _failure_workflow_option(definitions: Sequence[str]) -> list[tuple[str, str]]:
    """Return the option that starts failure workflows, if some of the definitions (`name v1`) have one."""
    names = [each.rpartition(" v")[0] for each in definitions]
    rows = visible(WorkflowDefinition.objects.filter(name__in=names).exclude(failure_workflow=""))
    known = {f"{name} v{version}": handler for name, version, handler in rows.values_list(*FAILURE_WORKFLOW_COLUMNS)}
    found = [f"{each}: {known[each]}" for each in definitions if each in known]
    shown = ", ".join([*found[:MAX_NAMED], *(["…"] if len(found) > MAX_NAMED else [])])
    label = _("Start the failure workflow of runs that have one (%(names)s)") % {"names": shown}
    return [("with_failure", label)] if found else []


def default_canary_size(total: int) -> int:
    """Return the size of the canary that the form offers: one tenth of the runs, between 1 and MAX_CANARY_SIZE."""
    return min(max(total // 10, 1), MAX_CANARY_SIZE) if total > 1 else 0


def _upgrade_summary(selection: dict[str, Any]) -> dict[str, Any]:
    """Check the newest active runs: how many can be upgraded, and why the others cannot."""
    running = selections.selected_runs(selection).filter(status=RUNNING).order_by("-pk")
    obstacles = upgrade_obstacles(running.values_list("pk", flat=True)[:MAX_CHECKED_RUNS])
    reasons: dict[str, list[str]] = {}
    for run_id, problems in obstacles.items():
        for problem in problems:
            reasons.setdefault(problem.replace(run_id, "…"), []).append(run_id)
    ranked_reasons = sorted(reasons.items(), key=lambda pair: -len(pair[1]))
    return {
        "checked_count": len(obstacles),
        "can": sum(not problems for problems in obstacles.values()),
        "reasons": [(reason, len(ids), ids[0]) for reason, ids in ranked_reasons[:MAX_REASONS]],
    }


def _require_planned_count(form_data: QueryDict) -> None:
    """Refuse to start if the selection has grown by more than a tenth since the plan was displayed."""
    planned = form_data.get("planned", "")
    if not planned.isdecimal() or len(planned) > MAX_COUNT_DIGITS:
        return
    total = count_selection(parse_selection(form_data)).total
    if total > MAX_GROWTH * int(planned):
        counts = {"planned": format_count(int(planned)), "total": format_count(total)}
        raise Conflict(_("The plan had %(planned)s runs; now it has %(total)s. Check it, then start again.") % counts)


def _parse_form(form_data: QueryDict) -> BulkRequest:
    action = form_data.get("action", "")
    return BulkRequest(
        action=action,
        selection=parse_selection(form_data),
        reason=form_data.get("reason", "").strip()[:2000],
        options={name: name in form_data for name, _ in ACTION_OPTIONS.get(action, ())},
        labels=[label for label in form_data.get("labels", "").split(",") if label.strip()],
        excluded=[*form_data.get("excluded", "").replace(",", " ").split(), *form_data.getlist("exclude")],
        rate=_parse_rate(form_data.get("rate", "")),
        canary_size=_parse_number(form_data.get("canary_size", "") or "0", _("canary size")),
        canary_share=_parse_number(form_data.get("canary_share", "") or "100", _("success rate")),
    )


def _parse_rate(text: str) -> float:
    try:
        return float(text or 50)
    except ValueError as error:
        raise Invalid(_("Not a valid rate: %(text)s.") % {"text": repr(text[:40])}) from error


def _parse_number(text: str, name: str) -> int:
    if not text.isdecimal() or len(text) > 15:
        raise Invalid(
            _("Not a valid integer for %(name)s: %(text)s.") % {"text": repr(text[:40]), "name": name.replace("_", " ")}
        )
    return int(text)


PAGE_SIZE = 100
MAX_LISTED = 50
CSV_BATCH = 500
STATE_PILLS = {
    "GATHERING": ("active", "search", gettext_lazy("Collecting")),
    "CANARY": ("active", "active", gettext_lazy("Canary")),
    "WATCHING": ("waiting", "waiting", gettext_lazy("Watching")),
    "WORKING": ("active", "active", gettext_lazy("Running")),
    "PAUSED": ("paused", "paused", gettext_lazy("Paused")),
    "DONE": ("succeeded", "succeeded", gettext_lazy("Done")),
    "STOPPED": ("stopped", "stopped", gettext_lazy("Stopped")),
}
APPROVAL_PILL = ("waiting", "person", gettext_lazy("Waiting for approval"))
OUTCOME_LABELS = {
    BulkItem.WAITING: ("waiting", gettext_lazy("Pending")),
    BulkItem.DONE: ("succeeded", gettext_lazy("Applied")),
    BulkItem.REFUSED: ("failed", gettext_lazy("Rejected")),
    BulkItem.WITHDRAWN: ("stopped", gettext_lazy("Excluded")),
}
FAILED_AGAIN_LABEL = gettext_lazy("Failed again")
CSV_COLUMNS = ("number", "run", "outcome", "answer", "at", "run_status", "failed_task", "failure")


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One run of an operation: its result, and the state that it has reached since."""

    item: BulkItem
    badge: SafeString
    result: RunResult | None = None


def render_state_pill(row: BulkOperation) -> SafeString:
    """Return the state of an operation as icon, label and color."""
    tone, icon, label = APPROVAL_PILL if row.is_waiting_for_approval else STATE_PILLS[row.state]
    return render_pill(tone, str(label), icon)


def operation_title(row: BulkOperation, group_titles: Mapping[int, str] | None = None) -> str:
    """Return the title of an operation: its action and its selection."""
    runs = _selection_text(row, group_titles)
    return _("%(action)s %(runs)s") % {"action": ACTION_LABELS[row.action], "runs": runs}


class BulkPage(Page):
    """List of the latest bulk operations."""

    name, title, template = "bulk", gettext_lazy("Bulk operations"), "ops/live_list.html"
    permission, live_template = "conductor.view_bulkoperation", "ops/bulk/rows.html"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = list(visible_operations().order_by("-created_at")[:MAX_LISTED])
        titles = selections.failure_group_titles(row.selection for row in rows)
        results = outcomes_of(rows)
        return {
            "numbers": COUNT_LABELS,
            "rows": [
                {
                    "row": row,
                    "state": render_result_pill(row, result),
                    "title": operation_title(row, titles),
                    "counts": _counts_of(row, result),
                }
                for row, result in ((row, results.get(row.pk)) for row in rows)
            ],
        }


COUNT_LABELS = (
    gettext_lazy("Applied"),
    gettext_lazy("Succeeded"),
    gettext_lazy("Failed again"),
    gettext_lazy("Rejected"),
    gettext_lazy("Pending"),
)


def _counts_of(row: BulkOperation, result: BulkOutcome | None) -> list[tuple[LazyText, str]]:
    """Return the labels of the numbers of an operation with the numbers; a dash for one that does not apply."""
    succeeded, again, pending = (
        (result.succeeded, result.failed_again, result.pending) if result else (None, None, row.remaining_count)
    )
    counts = (row.done, succeeded, again, row.refused, pending)
    texts = ("–" if count is None else format_count(count) for count in counts)
    return list(zip(COUNT_LABELS, texts, strict=True))


class BulkOperationPage(ObjectPage):
    """Page of one bulk operation."""

    name, template, permission = "bulk_operation", "ops/bulk/operation.html", "conductor.view_bulkoperation"
    live_template = "ops/bulk/progress.html"
    route = "bulk/<str:operation_id>/"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest, operation_id: str) -> dict[str, Any]:
        row = _find_operation(operation_id)
        outcome, after = request.GET.get("outcome", ""), request.GET.get("after", "")
        outcome = outcome if outcome in OUTCOME_LABELS or outcome == FAILED_AGAIN else ""
        items = _load_items(row, outcome, int(after) if after.isdecimal() and len(after) < 10 else 0)
        results, result = run_results(items[:PAGE_SIZE]), outcome_of(row)
        item_rows = [_item_row(row, item, results) for item in items[:PAGE_SIZE]]
        is_open, cause = row.state in BULK.open, _failure_group_of(row)
        return {
            "title": operation_title(row),
            "operation": row,
            "state": render_result_pill(row, result),
            "result": result,
            "action": ACTION_LABELS[row.action],
            "words": _selection_text(row),
            "cause": cause,
            "cause_title": f"{cause.definition} · {cause.title}" if cause else "",
            "paused": _pause_entry(row),
            "is_open": is_open,
            "is_final": not is_open and not any(each.result and each.result.is_open for each in item_rows),
            "may_pause": BULK.allows(row.state, "pause"),
            "may_resume": bool(row.resume_state) and not row.is_waiting_for_approval,
            "is_own": row.by == request.user.get_username() or row.owner_id == user_key(request.user.pk),
            "may_stop": BULK.allows(row.state, "stop"),
            "may_act": _may_act_on(request, row),
            "progress": _progress_text(row, result),
            "share": _progress_segments(row, result),
            "seconds": _remaining_ms(row),
            "answers": [(_outcome_pill(outcome), answer, count) for outcome, answer, count in frequent_answers(row)],
            "items": item_rows,
            "max_examined": selections.MAX_EXAMINED
            if outcome == FAILED_AGAIN and row.done > selections.MAX_EXAMINED
            else 0,
            "run_keys": run_keys(item.run_id for item in items[:PAGE_SIZE]),
            "next": items[PAGE_SIZE - 1].number if len(items) > PAGE_SIZE else None,
            "outcome": outcome,
            "outcomes": _outcome_filters(row, result),
            "plan_address": reverse("admin:bulk_plan", query=_plan_parameters(row)),
            "export": reverse("admin:bulk_export", args=[row.pk]),
            "audit": _audit_address(row) if request.user.has_perm("conductor.view_auditentry") else "",
        }

    def handle_post(self, request: HttpRequest, operation_id: str) -> HttpResponse:
        require_permission_on_any(request, PERMISSION)
        row, by, reason = (
            _find_operation(operation_id),
            request.user.get_username(),
            request.POST.get("reason", ""),
        )
        if not _may_act_on(request, row):
            raise PermissionDenied(PERMISSION)
        try:
            return HttpResponseRedirect(_handle_button(row, request, by, reason.strip()))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(_operation_address(row.pk))


class BulkExportPage(ObjectPage):
    """Download of the results of all runs as CSV."""

    name, permission, route = "bulk_export", "conductor.view_bulkoperation", "bulk/<str:operation_id>/results.csv"
    shows_granted_rows = True

    def urls(self, site):
        def view(request: HttpRequest, operation_id: str) -> StreamingHttpResponse:
            self._require_access(request)
            row = get_or_404(_find_operation, operation_id)
            rows = _export_rows(row, visible(Run.objects.all()))
            return download_rows(f"operation-{row.pk}", "csv", CSV_COLUMNS, rows)

        return [path(self.route, site.admin_view(view), name=self.name)]


def _may_act_on(request: HttpRequest, row: BulkOperation) -> bool:
    """Return True if the user may control all runs that the operation can select, or owns it and may control some."""
    if row.owner_id == user_key(request.user.pk):
        return may(request.user, PERMISSION)
    workflow = selected_workflow(row.selection)
    return request.user.has_perm(PERMISSION) or bool(workflow and may(request.user, PERMISSION, Run(name=workflow)))


def _handle_button(row: BulkOperation, request: HttpRequest, by: str, reason: str) -> str:
    """Execute the command of a button and return the address to redirect to."""
    match request.POST.get("do"):
        case "pause":
            commands.pause(row.pk, by, reason)
            messages.success(request, _("Paused. No further runs are processed."))
        case "resume":
            commands.resume(row.pk, by, reason)
            messages.success(request, _("Resumed."))
        case "approve":
            commands.approve(row.pk, by, reason)
            messages.success(request, _("Approved. The operation starts."))
        case "stop":
            commands.stop(row.pk, by, reason)
            messages.success(request, _("Stopped. Changes that were already applied are kept."))
        case "withdraw":
            count = commands.withdraw(row.pk, request.POST.getlist("run"), by, reason)
            messages.success(request, _("Excluded: %(count)s.") % {"count": count})
        case "retry_refused":
            messages.success(request, _("Started a new operation for the rejected runs."))
            return _operation_address(commands.retry_refused(row.pk, by, reason))
        case "retry_failed_again":
            started = commands.retry_failed_again(row.pk, by, reason)
            messages.success(request, _("Started a new operation for the runs that failed again."))
            return _operation_address(started)
        case _:
            raise Invalid(_("Missing or unknown action."))
    return _operation_address(row.pk)


def _audit_address(row: BulkOperation) -> str:
    """Return the address of the operation's audit log."""
    return reverse("admin:conductor_auditentry_changelist", query={"q": row.pk})


def _failure_group_of(row: BulkOperation) -> FailureGroup | None:
    """Return the failure group that the operation selects, if it selects one."""
    group_id = row.selection.get("failure_group")
    return visible(FailureGroup.objects.filter(pk=group_id)).first() if group_id else None


def _pause_entry(row: BulkOperation) -> AuditEntry | None:
    """Return the audit entry of the operator who paused it. None if it is not paused, or its canary paused it."""
    if row.state != PAUSED:
        return None
    acts = AuditEntry.objects.filter(object_type="bulk operation", object_id=row.pk)
    last = acts.filter(action__in=("pause", "resume")).order_by("-id").first()
    return last if last is not None and last.action == "pause" else None


def _load_items(row: BulkOperation, outcome: str, after: int) -> list[BulkItem]:
    items: QuerySet[BulkItem] = failed_again(row) if outcome == FAILED_AGAIN else row.items.all()
    if outcome in OUTCOME_LABELS:
        items = items.filter(outcome=outcome)
    return list(items.filter(number__gt=after).order_by("number")[: PAGE_SIZE + 1])


def _outcome_pill(outcome: str) -> SafeString:
    tone, label = OUTCOME_LABELS[outcome]
    return render_pill(tone, str(label))


def _item_row(row: BulkOperation, item: BulkItem, results: Mapping[str, RunResult]) -> ItemRow:
    """Return an item with the state of its run if the action reopened it, otherwise with its outcome."""
    badge = _outcome_pill(item.outcome)
    if item.outcome != BulkItem.DONE or row.action not in REOPENING_ACTIONS:
        return ItemRow(item, badge)
    result = results.get(item.run_id)
    if result is None:
        return ItemRow(item, render_pill("stopped", _("Removed")))
    if result.has_failed:
        return ItemRow(item, render_pill("failed", str(FAILED_AGAIN_LABEL)), result)
    return ItemRow(item, render_badge(result.status), result)


def _outcome_filters(row: BulkOperation, result: BulkOutcome | None) -> list[tuple[str, str, int]]:
    """Return the filters of the list of runs, with the number of runs of each."""
    filters = [(name, str(label), _outcome_count(row, name)) for name, (_, label) in OUTCOME_LABELS.items()]
    if result is not None:
        place = list(OUTCOME_LABELS).index(BulkItem.DONE) + 1
        filters.insert(place, (FAILED_AGAIN, str(FAILED_AGAIN_LABEL), result.failed_again))
    return filters


def _plan_parameters(row: BulkOperation) -> dict[str, str]:
    """Return the parameters for the page that plans the same operation."""
    names = row.options.get("labels")
    return {
        **selection_parameters(row.selection),
        "action": row.action,
        **({"labels": ", ".join(names)} if names else {}),
    }


def _remaining_ms(row: BulkOperation) -> int | None:
    """Return the expected duration of the pending items of an open operation, in milliseconds."""
    if row.state not in BULK.open or not row.remaining_count:
        return None
    return round(row.remaining_count / row.rate) * 1000


def render_result_pill(row: BulkOperation, result: BulkOutcome | None) -> SafeString:
    """Return the state of an operation. That of one that has ended says whether runs failed again."""
    if result is None or not result.failed_again or row.state != "DONE":
        return render_state_pill(row)
    return render_pill("failed", _("Done with failures"), "failed")


def _progress_text(row: BulkOperation, result: BulkOutcome | None) -> SafeString | str:
    if row.state == "GATHERING" and not row.total:
        return _("Collecting the runs.")
    done, failed = (row.done, 0) if result is None else (result.succeeded, result.failed_again)
    left = row.remaining_count if result is None else result.pending
    if result is None:
        text = _("<b>{done}</b> applied, <b>{refused}</b> rejected, <b>{left}</b> pending of {total}.")
    elif row.refused:
        text = _(
            "<b>{done}</b> succeeded, <b>{failed}</b> failed again, <b>{refused}</b> rejected, <b>{left}</b> pending "
            "of {total}."
        )
    else:
        text = _("<b>{done}</b> succeeded, <b>{failed}</b> failed again, <b>{left}</b> pending of {total}.")
    counts = {"done": done, "failed": failed, "refused": row.refused, "left": left, "total": row.total}
    return format_html(text, **{name: format_count(count) for name, count in counts.items()})


def _progress_segments(row: BulkOperation, result: BulkOutcome | None) -> list[tuple[str, int, int]]:
    """Return the segments of the progress bar: kind, offset, width. Both numbers are in thousandths.

    If the success of the action depends on the runs, those that are still open are pending.
    """
    done, failed = (row.done, row.refused) if result is None else (result.succeeded, result.failed_again + row.refused)
    parts, offset = [], 0
    for kind, count in (("done", done), ("refused", failed), ("withdrawn", row.withdrawn)):
        width = round(1000 * count / row.total) if row.total else 0
        parts.append((kind, offset, width))
        offset += width
    return parts


def _outcome_count(row: BulkOperation, outcome: str) -> int:
    return row.remaining_count if outcome == BulkItem.WAITING else getattr(row, outcome.lower())


def _export_rows(row: BulkOperation, readable: QuerySet[Run]) -> Iterator[dict[str, Any]]:
    after = 0
    while items := list(row.items.filter(number__gt=after).order_by("number")[:CSV_BATCH]):
        results = run_results(items, readable)
        for item in items:
            result = results.get(item.run_id, RunResult(""))
            facts = (item.number, item.run_id, item.outcome, item.answer, item.at or "")
            yield dict(zip(CSV_COLUMNS, (*facts, result.status, result.task, result.reason), strict=True))
        after = items[-1].number


def _selection_text(row: BulkOperation, group_titles: Mapping[int, str] | None = None) -> str:
    if title := row.options.get("failure_group_title"):
        group_titles = {row.selection[selections.FAILURE_GROUP]: title}
    try:
        return selections.describe_selection(row.selection, group_titles)
    except Invalid:
        return _("runs of a selection that is no longer valid")


def _operation_address(operation_id: str) -> str:
    return reverse("admin:bulk_operation", args=[operation_id])


def _find_operation(operation_id: str) -> BulkOperation:
    row = visible_operations().filter(pk=operation_id).first()
    if row is None:
        raise NotFound(f"No such bulk operation: {operation_id[:64]}.")
    return row
