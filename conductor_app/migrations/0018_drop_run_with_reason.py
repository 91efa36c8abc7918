from django.db import migrations

from conductor_app.models.migration_operations import RemoveIndexWithoutLock


class Migration(migrations.Migration):
    """Drop the index that `run_with_reason_by_start` replaces, for the previous release as well."""

    # DROP INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0017_run_indexes_by_creator_and_reason"),
    ]

    operations = [RemoveIndexWithoutLock(model_name="run", name="run_with_reason")]
