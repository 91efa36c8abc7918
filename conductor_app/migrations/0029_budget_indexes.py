from django.db import migrations, models

from conductor_app.models.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("conductor", "0028_roots_of_model_calls"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="budgethold",
            index=models.Index(
                condition=models.Q(("waits_for_calls", True)), fields=["held_at"], name="budget_hold_for_calls"
            ),
        ),
        AddIndexWithoutLock(
            model_name="modelcall",
            index=models.Index(fields=["root_id"], name="model_call_by_root"),
        ),
        AddIndexWithoutLock(
            model_name="modelcall",
            index=models.Index(
                condition=models.Q(("reply__isnull", False)),
                fields=["task_id", "content_key"],
                name="model_call_reply_of_task",
            ),
        ),
    ]
