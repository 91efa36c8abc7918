"""What this slice does in background processes, and the handlers of its messages."""

from ..runs.commands.messages import register_handlers
from ..runs.models import ABOUT_GROUP
from ..utils import background
from .auth.commands import delete_expired_clients, reencrypt_access_tokens
from .commands.artifacts import delete_expired_artifacts, delete_expired_tasks
from .commands.groups import BULK_ACTION_SUBJECT, handle_bulk_action
from .commands.tasks import handle_dependency_resolved, handle_group_check, pass_deadlines, wake_task
from .pulse_publisher import publish_due_messages
from .store import delete_premature_messages

BACKGROUND_WORK = background.BackgroundWork(
    sweeps={"pass_deadlines": pass_deadlines},
    wake_task=wake_task,
    skip_messages=(delete_premature_messages,),
    publish=(publish_due_messages,),
    deletions=(delete_expired_artifacts, delete_expired_clients),
    prune_sweeps={"expire_tasks": delete_expired_tasks},
    reencrypt=(reencrypt_access_tokens,),
)


def connect() -> None:
    """Register what this slice does. Called once, when the app is ready."""
    register_handlers({
        "resolved": handle_dependency_resolved,
        BULK_ACTION_SUBJECT: handle_bulk_action,
        ABOUT_GROUP: handle_group_check,
    })  # fmt: skip
    background.register(BACKGROUND_WORK)
