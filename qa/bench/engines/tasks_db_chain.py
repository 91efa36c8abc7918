"""Chain of five tasks of django-tasks-db: `tasks_db_chain.py DATABASE_URL WARM_UP SECONDS`.

`tasks_db_chain.py worker` is one of the worker processes.
"""

import sys

from progress import keep_open, measure


def main() -> None:
    from django_settings import configure

    configure("django_tasks_db", "django_tasks_db.DatabaseBackend")
    import framework_chain
    from django.core.management import call_command
    from django_tasks_db.models import DBTaskResult

    if sys.argv[1] == "worker":
        call_command("db_worker", interval=0.02, startup_delay=False, reload=False, verbosity=0)
        return
    if sys.argv[1] == "prepare":
        call_command("migrate", verbosity=0)
        return

    def count_open() -> int:
        return DBTaskResult.objects.filter(status__in=["READY", "RUNNING"]).count()

    load = keep_open(lambda: framework_chain.do_step.enqueue(0), count_open)
    measure("django-tasks-db", load, float(sys.argv[2]), float(sys.argv[3]))


if __name__ == "__main__":
    main()
