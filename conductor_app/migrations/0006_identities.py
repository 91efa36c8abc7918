"""Identities by id: the user that has claimed a human task, and the permission to link an account to the provider."""

from django.db import migrations, models

import conductor_app.db.fields


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0005_mark_prefixes"),
    ]

    operations = [
        migrations.AddField(
            model_name="humantask",
            name="claimer_id",
            field=conductor_app.db.fields.UserKeyField(null=True),
        ),
        migrations.AddField(
            model_name="userprofile",
            name="link_until",
            field=conductor_app.db.fields.MomentField(null=True),
        ),
    ]
