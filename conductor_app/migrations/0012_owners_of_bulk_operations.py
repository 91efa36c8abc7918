"""Store on whose behalf a bulk operation changes runs. Those that exist act without limits, as before."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0011_invited_people"),
    ]

    operations = [
        migrations.AddField(
            model_name="bulkoperation",
            name="owner_id",
            field=models.BigIntegerField(default=0, db_default=0),
        ),
    ]
