"""Give the constraint on open attempts a condition that claims do not match.

Exempt from the linter: the rows satisfy the added constraint, because the removed one is the same.

Only the conditions differ. Until the removal, both hold.
"""

from django.db import migrations, models

from conductor_app.db.migration_operations import AddUniqueConstraintWithoutLock, RemoveUniqueConstraintWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0019_delete_alert_rules"),
    ]

    operations = [
        AddUniqueConstraintWithoutLock(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["LEASED", "PENDING"]), models.Q(("id", ""), _negated=True)),
                fields=("task",),
                name="one_open_attempt_per_task",
            ),
        ),
        RemoveUniqueConstraintWithoutLock(model_name="attempt", name="one_open_attempt_a_task"),
    ]
