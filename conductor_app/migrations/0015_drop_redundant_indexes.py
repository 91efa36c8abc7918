from django.db import migrations

from conductor_app.models.migration_operations import DropPatternIndexesOfIds, RemoveIndexWithoutLock


class Migration(migrations.Migration):
    """Drop the index of all open attempts by their timers, and the second indexes of ids.

    The sweeps of the previous release read the open attempts by `one_open_attempt_a_task` instead.
    """

    # DROP INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0014_attempt_timer_index"),
    ]

    operations = [
        RemoveIndexWithoutLock(model_name="attempt", name="attempt_due"),
        DropPatternIndexesOfIds(),
    ]
