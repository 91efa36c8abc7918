"""Store on whose behalf a bulk operation changes runs. Those that exist act without limits, as before."""

from django.db import migrations, models

import conductor_app.db.fields


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0011_invited_people"),
    ]

    operations = [
        migrations.AddField(
            model_name="bulkoperation",
            name="owner_id",
            field=conductor_app.db.fields.UserKeyField(default=0, db_default=0),
        ),
    ]
