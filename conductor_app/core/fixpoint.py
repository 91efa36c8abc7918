"""The evaluation of rules that runs and standalone tasks share: apply the first rule that fires until none does."""

from collections.abc import Callable
from typing import Protocol, TypeVar


class Snapshot(Protocol):
    """Snapshot of a run or of a standalone task."""

    @property
    def is_open(self) -> bool: ...


SnapshotT = TypeVar("SnapshotT", bound=Snapshot)
EffectT = TypeVar("EffectT")


def run_to_fixpoint(
    snapshot: SnapshotT,
    effects: list[EffectT],
    first_firing_rule: Callable[[SnapshotT], list[EffectT]],
    apply_effects: Callable[[SnapshotT, list[EffectT]], SnapshotT],
    max_effects: int,
) -> SnapshotT:
    """Apply rules until none fires, the snapshot is final, or there are `max_effects` effects.

    Appends the new effects to `effects`, and returns the snapshot after them.
    """
    while snapshot.is_open and len(effects) < max_effects:
        new_effects = first_firing_rule(snapshot)
        if not new_effects:
            break
        effects += new_effects
        snapshot = apply_effects(snapshot, new_effects)
    return snapshot
