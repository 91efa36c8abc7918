from django.db import migrations, models

from conductor_app.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0029_last_tests_and_issues"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="modelcall",
            index=models.Index(fields=["integration", "-started_at"], name="model_call_by_integration"),
        ),
        AddIndexWithoutLock(
            model_name="modelcall",
            index=models.Index(
                condition=models.Q(("status", "FAILED")),
                fields=["integration", "-started_at"],
                name="model_call_failed",
            ),
        ),
    ]
