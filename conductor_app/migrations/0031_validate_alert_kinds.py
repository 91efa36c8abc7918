from django.db import migrations

from conductor_app.models.migration_operations import ValidateCheck


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0030_budget_alerts"),
    ]

    operations = [ValidateCheck(model_name="alert", name="alert_kind_is_known")]
