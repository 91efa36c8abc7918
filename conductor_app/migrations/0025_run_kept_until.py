from django.db import migrations

import conductor_app.db.fields


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0024_attempt_by_fairness_key"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="kept_until",
            field=conductor_app.db.fields.MomentField(null=True),
        ),
    ]
