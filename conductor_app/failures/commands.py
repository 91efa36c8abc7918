"""Grouping of failures, and commands on failure groups: transition, assign, annotate, merge and split."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from ..access import audit
from ..core.errors import Conflict, Invalid, NotFound
from ..core.failure_grouping import normalize_message
from ..core.states import FAILURE, RESOLVED
from ..db.database import transaction
from . import store
from .models import Failure, FailureGroup, HourlyFailureCount

HOUR_MS = 3_600_000
MAX_ADDRESS_LENGTH = 500
MAX_BUILDS = 200
"""The maximum number of builds that a resolved group stores as older than its fix."""


def group_failures(limit: int) -> int:
    """Add up to `limit` new failures to their groups. Returns how many."""
    with transaction.atomic():
        found = store.ungrouped_failures(limit)
        if not found:
            return 0
        by_fingerprint: dict[str, list[Failure]] = defaultdict(list)
        for failure in found:
            by_fingerprint[failure.fingerprint].append(failure)
        groups = _find_or_create_groups(by_fingerprint)
        by_group: dict[int, list[Failure]] = defaultdict(list)
        for fingerprint, failures in by_fingerprint.items():
            by_group[groups[fingerprint].pk] += failures
        for group in {group.pk: group for group in groups.values()}.values():
            _count_failures(group, by_group[group.pk])
    return len(found)


def _find_or_create_groups(failures: Mapping[str, Sequence[Failure]]) -> dict[str, FailureGroup]:
    """Return the group of each fingerprint. Creates missing groups, and replaces merged groups by their targets."""
    known = {group.fingerprint: group for group in FailureGroup.objects.filter(fingerprint__in=failures)}
    created = [_new_group(some) for fingerprint, some in failures.items() if fingerprint not in known]
    known |= {group.fingerprint: group for group in FailureGroup.objects.bulk_create(created)}
    whole = FailureGroup.objects.in_bulk({group.merged_into_id for group in known.values()} - {None})
    return {fingerprint: whole.get(group.merged_into_id, group) for fingerprint, group in known.items()}


def _new_group(failures: Sequence[Failure]) -> FailureGroup:
    first = failures[0]
    return FailureGroup(
        fingerprint=first.fingerprint,
        definition=first.definition,
        ref=first.ref,
        message=normalize_message(first.message),
        first_at=first.at,
        last_at=first.at,
    )


def _count_failures(group: FailureGroup, failures: Sequence[Failure]) -> None:
    last = max(failures, key=lambda failure: (failure.at, failure.pk))
    if last.at >= group.last_at:
        group.last_at, group.sample = last.at, last.message
        group.sample_run_id, group.sample_attempt_id = last.run_id, last.attempt_id
    group.first_at = min(group.first_at, *(failure.at for failure in failures))
    group.count += len(failures)
    if any(is_regression(group, failure.version, failure.build) for failure in failures):
        group.state = FAILURE.after(group.state, "recur")
    group.save()
    Failure.objects.filter(pk__in=[failure.pk for failure in failures]).update(group=group)
    counts = Counter((f.at - f.at % HOUR_MS, f.version, f.build) for f in failures)
    store.add_to_counts([(group.pk, *place, count) for place, count in counts.items()])


def is_regression(group: FailureGroup, version: int, build: str) -> bool:
    """Return True if a failure reopens a resolved group. Failures of versions and builds older than the fix do not."""
    if group.state != RESOLVED:
        return False
    if group.resolved_version is not None and version < group.resolved_version:
        return False
    return not (group.resolved_build and build != group.resolved_build and build in group.earlier_builds)


def transition_group(
    group_id: int, event: str, by: str, reason: str = "", *, version: int | None = None, build: str = ""
) -> FailureGroup:
    """Acknowledge, resolve, ignore or reopen a failure group. `version`, `build`: the first ones that contain the fix.

    Raises:
        NotAllowedInState: when the state of the group does not allow the event.
    """
    with transaction.atomic():
        group = _lock_group(group_id)
        was, group.state = group.state, FAILURE.after(group.state, event)
        is_resolved = group.state == RESOLVED
        group.resolved_version = version if is_resolved else None
        group.resolved_build = build if is_resolved else ""
        group.earlier_builds = _builds(group) if is_resolved and build else []
        group.save()
        facts = {"from": was, "to": group.state, "version": version, "build": build}
        _record_change(group, by, event, reason, {name: value for name, value in facts.items() if value})
    return group


def assign_group(group_id: int, assignee: str, by: str, reason: str = "") -> None:
    """Assign a failure group to a user. An empty name removes the assignment."""
    with transaction.atomic():
        group = _lock_group(group_id)
        was, group.assignee = group.assignee, assignee.strip()[:255]
        group.save(update_fields=["assignee"])
        _record_change(group, by, "assign", reason, {"from": was, "to": group.assignee})


def annotate_group(group_id: int, note: str, by: str) -> None:
    """Replace the note of a failure group."""
    with transaction.atomic():
        group = _lock_group(group_id)
        group.note = note.strip()[:5000]
        group.save(update_fields=["note"])
        _record_change(group, by, "note", group.note)


def link_issue(group_id: int, address: str, by: str) -> None:
    """Store the address of the issue that tracks the cause of a failure group. An empty address removes it.

    Raises:
        Invalid: when it is no address of a page, or has a user or a password.
    """
    address = address.strip()
    if address and not _is_page_address(address):
        raise Invalid("The address of an issue must begin with https:// or http:// and have at most 500 characters.")
    with transaction.atomic():
        group = _lock_group(group_id)
        was, group.issue_url = group.issue_url, address
        group.save(update_fields=["issue_url"])
        _record_change(group, by, "link_issue", "", {"from": was, "to": address})


def _is_page_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    is_page = parts.scheme in ("https", "http") and bool(parts.hostname) and "@" not in parts.netloc
    return is_page and len(address) <= MAX_ADDRESS_LENGTH and address.isprintable() and " " not in address


def merge_groups(group_id: int, into_id: int, by: str, reason: str = "") -> None:
    """Merge a failure group into another one, which receives its past and future failures.

    Raises:
        Invalid: when the target is the group itself, or is merged.
        Conflict: when the group is merged already.
    """
    with transaction.atomic():
        store.serialize_grouping()
        part, whole = _lock_group(group_id), _lock_group(into_id)
        if part.pk == whole.pk or whole.merged_into_id is not None:
            raise Invalid("Choose another failure group as the target, one that is not merged itself.")
        if part.merged_into_id is not None:
            raise Conflict(f"Failure group {part.pk} is already merged into group {part.merged_into_id}.")
        FailureGroup.objects.filter(merged_into=part).update(merged_into=whole)
        part.merged_into = whole
        whole.count, whole.first_at = whole.count + part.count, min(whole.first_at, part.first_at)
        whole.last_at = max(whole.last_at, part.last_at)
        part.save()
        whole.save()
        _record_change(whole, by, "merge", reason, {"part": part.pk})


def split_group(group_id: int, by: str, reason: str = "") -> None:
    """Undo the merge of a failure group. Failures counted since the merge stay in the other group.

    Raises:
        Conflict: when the group is not merged.
    """
    with transaction.atomic():
        store.serialize_grouping()
        part = _lock_group(group_id)
        if part.merged_into_id is None:
            raise Conflict(f"Failure group {part.pk} is not merged.")
        whole = _lock_group(part.merged_into_id)
        whole.count = max(whole.count - part.count, 0)
        part.merged_into = None
        part.save()
        whole.save()
        _record_change(whole, by, "split", reason, {"part": part.pk})


def prune_failures(before: int, limit: int) -> int:
    """Delete up to `limit` failures before `before` (milliseconds), and the groups without failures since."""
    old = list(Failure.objects.filter(at__lt=before).order_by("at").values_list("pk", flat=True)[:limit])
    HourlyFailureCount.objects.filter(hour_at__lt=before).delete()
    FailureGroup.objects.filter(last_at__lt=before).delete()
    return Failure.objects.filter(pk__in=old).delete()[0]


def _lock_group(group_id: int) -> FailureGroup:
    group = FailureGroup.objects.select_for_update().filter(pk=group_id).first()
    if group is None:
        raise NotFound(f"There is no failure group {group_id}.")
    return group


def _builds(group: FailureGroup) -> list[str]:
    builds: Iterable[str] = HourlyFailureCount.objects.filter(group=group).values_list("build", flat=True).distinct()
    return sorted(builds)[:MAX_BUILDS]


def _record_change(
    group: FailureGroup, by: str, action: str, reason: str, facts: Mapping[str, object] | None = None
) -> None:
    audit.record("failure group", str(group.pk), action, by, reason=reason, facts=facts)
