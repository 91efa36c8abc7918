from django.db import migrations, models

import conductor_app.models.fields


class Migration(migrations.Migration):
    """Add alerts on budgets."""

    dependencies = [
        ("conductor", "0027_budget_reservations"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="alert", name="alert_kind_is_known"),
        migrations.AddField(
            model_name="alert",
            name="budget",
            field=conductor_app.models.fields.DocumentField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ("count", "share", "absence", "age", "budget"))),
                name="alert_kind_is_known",
            ),
        ),
    ]
