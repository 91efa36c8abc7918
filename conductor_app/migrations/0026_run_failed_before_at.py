from django.db import migrations

import conductor_app.db.fields


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0025_run_kept_until"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="failed_before_at",
            field=conductor_app.db.fields.MomentField(null=True),
        ),
    ]
