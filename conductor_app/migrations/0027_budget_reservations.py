from django.db import migrations, models

import conductor_app.models.fields


class Migration(migrations.Migration):
    """Add what budgets reserve for open calls, the top of the tree of a run, the key of the content of a call, and the
    budget of an alert.
    """

    dependencies = [
        ("conductor", "0026_ai_steps"),
    ]

    operations = [
        migrations.AddField(
            model_name="alert",
            name="budget",
            field=conductor_app.models.fields.DocumentField(blank=True, null=True),
        ),
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
    ]
