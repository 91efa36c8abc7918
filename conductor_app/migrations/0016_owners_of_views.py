"""Store the users that own saved views, and rename two permissions.

A view whose owner is no user any more belongs to no user: a new user with this name does not get it.
"""

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import migrations, router

NAMES = {
    "execute_secret": "Can execute secrets (no effect)",
    "execute_variable": "Can execute variables (no effect)",
}


def fill_owners(apps, schema_editor):
    alias = schema_editor.connection.alias
    # The name field of users is not part of a historical model.
    users = apps.get_model(settings.AUTH_USER_MODEL)._base_manager.using(alias)
    names = get_user_model().USERNAME_FIELD
    views = apps.get_model("conductor", "SavedView").objects.using(alias).filter(owner_id=None)
    for owner in views.order_by().values_list("owner", flat=True).distinct():
        owner_id = users.filter(**{names: owner}).values_list("pk", flat=True).first()
        views.filter(owner=owner).update(owner_id=owner_id or 0)


def rename_permissions(apps, schema_editor):
    alias = schema_editor.connection.alias
    if not router.allow_migrate(alias, "auth", model_name="permission"):
        return
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    for codename, name in NAMES.items():
        permissions.filter(content_type__app_label="conductor", codename=codename).update(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0015_ids_of_owners_and_actors"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(fill_owners, migrations.RunPython.noop),
        migrations.RunPython(rename_permissions, migrations.RunPython.noop),
    ]
