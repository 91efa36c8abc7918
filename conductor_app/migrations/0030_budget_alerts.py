from django.db import migrations, models

from conductor_app.models.migration_operations import AddCheckNotValid


class Migration(migrations.Migration):
    """Permit alerts on budgets. The next migration validates the constraint."""

    dependencies = [
        ("conductor", "0029_budget_indexes"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="alert", name="alert_kind_is_known"),
        AddCheckNotValid(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ("count", "share", "absence", "age", "budget"))),
                name="alert_kind_is_known",
            ),
        ),
    ]
