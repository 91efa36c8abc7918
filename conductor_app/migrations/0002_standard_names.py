"""Rename tables and columns by the terms of the glossary, and the permissions that are named after them.

Exempt from the linter: version 0.1, the only one before it, was stopped for this migration.
"""

import django.db.models.deletion
from django.db import migrations, models

MODELS = {
    "Ring": "AlertFiring",
    "StoredDay": "DailyStorage",
    "Catalogue": "DefinitionRevision",
    "UsualDuration": "DurationBaseline",
    "GroupFacts": "GroupProfile",
    "EventVerdict": "HandlerEvaluation",
    "FailureTally": "HourlyFailureCount",
    "PersonsTask": "HumanTask",
    "Tally": "MinuteCount",
    "PayloadUse": "PayloadReference",
    "HeldAct": "PendingApproval",
    "Notice": "PulseMessage",
    "Plan": "ResolvedDefinition",
    "CaseRule": "SaveRequirement",
    "Group": "TaskGroup",
    "Profile": "UserProfile",
    "Solo": "StandaloneTask",
}


def rename_permissions(apps, schema_editor):
    """Keep what users and groups may do: a permission is named after its model."""
    permissions = apps.get_model("auth", "Permission").objects.filter(content_type__app_label="conductor")
    for old, new in MODELS.items():
        for action in ("add", "change", "delete", "view"):
            name = f"{action}_{new.lower()}"
            permissions.filter(codename=f"{action}_{old.lower()}").update(codename=name)


class Migration(migrations.Migration):
    dependencies = [("auth", "0012_alter_user_first_name_max_length"), ("conductor", "0001_initial")]

    operations = [
        *(migrations.RenameModel(old, new) for old, new in MODELS.items()),
        migrations.RunPython(rename_permissions, migrations.RunPython.noop),
        migrations.RenameField("run", "plan", "resolved_definition"),
        migrations.RenameField("attempt", "tells_start", "publishes_start"),
        migrations.RenameField("alert", "rang_at", "last_fired_at"),
        migrations.RenameField("alertfiring", "heard_at", "delivered_at"),
        migrations.RenameField("bulkoperation", "goes_on_as", "resume_state"),
        migrations.RemoveIndex("humantask", "persons_task_by_taker"),
        migrations.RenameField("humantask", "taken_by", "claimed_by"),
        migrations.RenameField("humantask", "taken_at", "claimed_at"),
        migrations.RenameField("humantask", "is_taker_external", "is_claimer_external"),
        migrations.AddIndex(
            model_name="humantask",
            index=models.Index(
                condition=models.Q(("claimed_by", ""), _negated=True),
                fields=["claimed_by", "-claimed_at"],
                name="human_task_by_claimer",
            ),
        ),
        migrations.RemoveIndex("groupwatch", "watch_to_look_at"),
        migrations.RenameField("groupwatch", "looked_at", "checked_at"),
        migrations.RenameField("groupwatch", "told_at", "notified_at"),
        migrations.AddIndex(
            model_name="groupwatch",
            index=models.Index(
                condition=models.Q(("notified_at__isnull", True)), fields=["checked_at", "id"], name="watch_to_check"
            ),
        ),
        migrations.RenameIndex("alertfiring", new_name="firing_of_alert", old_name="ring_of_alert"),
        migrations.RenameIndex("pendingapproval", new_name="approval_of_group", old_name="held_act_of_group"),
        migrations.RenameIndex("eventlistener", new_name="listener_by_seen_at", old_name="listener_by_sight"),
        migrations.RemoveConstraint("task", "one_task_per_run_ref_and_turn"),
        migrations.RemoveIndex("task", "task_joined"),
        migrations.RemoveIndex("task", "task_in_loop"),
        migrations.RenameField("task", "turn", "iteration_path"),
        migrations.RenameField("task", "root", "branch_head"),
        migrations.RenameField("task", "memo", "step_state"),
        migrations.RenameIndex(
            model_name="attempt",
            new_name="attempt_waiting_standalone",
            old_name="attempt_waiting_alone",
        ),
        migrations.RenameIndex(
            model_name="attempt",
            new_name="attempt_leased_standalone",
            old_name="attempt_leased_alone",
        ),
        migrations.RenameIndex(
            model_name="attempt",
            new_name="attempt_standalone_by_worker",
            old_name="attempt_alone_by_worker",
        ),
        migrations.RenameIndex(
            model_name="standalonetask",
            new_name="standalone_by_group",
            old_name="solo_by_group",
        ),
        migrations.RenameIndex(
            model_name="standalonetask",
            new_name="standalone_to_wake",
            old_name="solo_to_wake",
        ),
        migrations.RenameIndex(
            model_name="standalonetask",
            new_name="standalone_unresolved",
            old_name="solo_unresolved",
        ),
        migrations.RenameIndex(
            model_name="standalonetask",
            new_name="standalone_by_expiry",
            old_name="solo_by_expiry",
        ),
        migrations.AlterField(
            model_name="standalonetask",
            name="task",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                primary_key=True,
                related_name="standalone",
                serialize=False,
                to="conductor.task",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("joined_by", ""), _negated=True),
                fields=["run", "joined_by", "iteration_path", "status"],
                name="task_joined",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("loop_ref", ""), _negated=True),
                fields=["run", "loop_ref", "iteration_path"],
                name="task_in_loop",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.UniqueConstraint(
                fields=("run", "ref", "iteration_path"), name="one_task_per_run_ref_and_iteration_path"
            ),
        ),
    ]
