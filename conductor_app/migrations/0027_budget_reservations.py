from django.db import migrations, models

import conductor_app.models.fields
from conductor_app.models.migration_operations import AddIndexWithoutLock

FILL_ROOTS = """
UPDATE conductor_modelcall SET root_id = COALESCE(
    (SELECT CASE WHEN run.root_id = '' THEN run.id ELSE run.root_id END
     FROM conductor_run run WHERE run.id = conductor_modelcall.run_id),
    run_id
) WHERE root_id = ''
"""


class Migration(migrations.Migration):
    """Add what budgets reserve for open calls, the top of the tree of a run, and the key of the content of a call."""

    atomic = False

    dependencies = [
        ("conductor", "0026_ai_steps"),
    ]

    operations = [
        migrations.AddField(
            model_name="budgethold",
            name="root_id",
            field=conductor_app.models.fields.IdField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="budgethold",
            name="waits_for_calls",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="modelcall",
            name="content_key",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="modelcall",
            name="reserved_cost",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="modelcall",
            name="reserved_tokens",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="modelcall",
            name="root_id",
            field=conductor_app.models.fields.IdField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.RunSQL(FILL_ROOTS, migrations.RunSQL.noop),
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
