from django.db import migrations, models

from conductor_app.models.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    """Index the runs of each version of a definition."""

    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0021_agent_permission"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="run",
            index=models.Index(fields=["name", "version", "-created_at"], name="run_by_version"),
        ),
    ]
