"""The state of a worker as a label."""

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...insight.queues.workers import WorkerSummary
from ..badges import render_pill

STATE_PILLS = {
    "alive": ("succeeded", gettext_lazy("Online")),
    "quiet": ("waiting", gettext_lazy("Not polling")),
    "gone": ("stopped", gettext_lazy("Offline")),
}


def render_worker_state(worker: WorkerSummary, now: int) -> SafeString:
    """Return the state of a worker as icon, label and color."""
    if worker.hold is not None:
        return render_pill("paused", _("Draining"), "paused")
    tone, label = STATE_PILLS[worker.state(now)]
    return render_pill(tone, str(label))
