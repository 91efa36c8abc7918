import uuid

from django.contrib.auth.hashers import make_password
from django.db import migrations


def applications_of_keys(apps, schema_editor):
    """Each name that keys were made for becomes an application; it may do all, as its keys could until now."""
    AccessKey, Application = apps.get_model("conductor", "AccessKey"), apps.get_model("conductor", "Application")
    names = sorted(set(AccessKey.objects.values_list("application_name", flat=True)))
    for name in names:
        keys = AccessKey.objects.filter(application_name=name)
        made = Application.objects.create(
            id=(id := str(uuid.uuid4())),
            name=name,
            user=_own_user(apps, id, name),
            created_at=min(keys.values_list("created_at", flat=True)),
        )
        keys.update(application=made)


def _own_user(apps, id, name):
    User, Group = apps.get_model("auth", "User"), apps.get_model("auth", "Group")
    GroupFacts = apps.get_model("conductor", "GroupFacts")
    user = User.objects.create(username=f"app:{id}", first_name=name[:150], password=make_password(None))
    facts = GroupFacts.objects.filter(role="ADMIN").first()
    if facts is None:
        taken = Group.objects.filter(name="Administrators").exists()
        group = Group.objects.create(name="Administrators (ADMIN)" if taken else "Administrators")
        facts = GroupFacts.objects.create(group=group, role="ADMIN", description="The role ADMIN.")
    user.groups.add(facts.group_id)
    return user


def names_of_keys(apps, schema_editor):
    for key in apps.get_model("conductor", "AccessKey").objects.select_related("application"):
        key.application_name = key.application.name
        key.save()


class Migration(migrations.Migration):
    """By itself: PostgreSQL alters no table whose rows have just been changed."""

    dependencies = [("conductor", "0006_access")]

    operations = [migrations.RunPython(applications_of_keys, names_of_keys)]
