"""The built-in workers, by their task type."""

from conductor_app.ai.commands.vectors import executes_ai_tasks
from conductor_app.system_tasks.http import Http
from conductor_app.system_tasks.http_poll import HttpPoll
from conductor_app.system_tasks.publishing import EventWorker, KafkaPublish
from conductor_app.system_tasks.sql import Jdbc
from conductor_app.system_tasks.worker import BuiltInWorker


def ai_workers() -> dict[str, BuiltInWorker]:
    """Return the workers of AI tasks by their type; none on a server that does not execute these tasks."""
    if not executes_ai_tasks():
        return {}
    from conductor_app.ai.workers import AI_WORKERS

    return {worker.type: worker for worker in AI_WORKERS}


AI_QUEUES = ai_workers()
"""The workers of AI tasks. They have threads of their own, because a call takes minutes."""
WORKERS: dict[str, BuiltInWorker] = {
    **{worker.type: worker for worker in (Http(), HttpPoll(), Jdbc(), EventWorker(), KafkaPublish())},
    **AI_QUEUES,
}
QUEUES = tuple(queue for queue in WORKERS if queue not in AI_QUEUES)
"""The queues of the workers whose tasks end within seconds."""
