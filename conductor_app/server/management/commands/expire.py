"""Delete expired standalone tasks, artifacts, groups, queues and workers now."""

from django.core.management.base import BaseCommand

from conductor_app.payloads.commands import delete_expired_payloads
from conductor_app.processes.sweeps import SWEEP_BATCH
from conductor_app.taskcluster.commands.artifacts import delete_expired_artifacts, delete_expired_tasks


class Command(BaseCommand):
    """`manage.py expire`: the job that beat runs once per hour."""

    help = "Delete expired standalone tasks, artifacts, task groups, queues and workers."

    def handle(self, *args: object, **options: object) -> None:
        delete_expired_artifacts(SWEEP_BATCH)
        while delete_expired_payloads(SWEEP_BATCH) == SWEEP_BATCH:
            pass
        count = 0
        while deleted := delete_expired_tasks(SWEEP_BATCH):
            count += deleted
        self.stdout.write(f"Deleted {count} tasks.")
