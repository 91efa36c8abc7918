"""Create all tables of version 0.1.

Exempt from the linter: no process uses the database before its tables exist.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import conductor_app.models.fields
import conductor_app.telemetry.log_context


class Migration(migrations.Migration):
    """Create all tables as version 0.1.0 had them; it replaces the 55 migrations of that version."""

    replaces = [
        ("conductor", "0001_first_tables"),
        ("conductor", "0002_waiting_requests"),
        ("conductor", "0003_schedules"),
        ("conductor", "0004_payloads_elsewhere"),
        ("conductor", "0005_secrets_and_variables"),
        ("conductor", "0006_access"),
        ("conductor", "0007_applications_of_keys"),
        ("conductor", "0008_keys_of_applications"),
        ("conductor", "0009_events"),
        ("conductor", "0010_tidings"),
        ("conductor", "0011_webhooks"),
        ("conductor", "0012_schemas"),
        ("conductor", "0013_inbox_messages"),
        ("conductor", "0014_indexes_for_searches"),
        ("conductor", "0015_failures"),
        ("conductor", "0016_clients_and_scope_roles"),
        ("conductor", "0017_what_people_choose"),
        ("conductor", "0018_stand_alone_tasks"),
        ("conductor", "0019_queue_holds_and_tallies"),
        ("conductor", "0020_bulk_operations"),
        ("conductor", "0021_artifacts"),
        ("conductor", "0022_notices_in_order"),
        ("conductor", "0023_drafts_and_cases"),
        ("conductor", "0024_what_is_usual"),
        ("conductor", "0025_cached_results"),
        ("conductor", "0026_tasks_for_people"),
        ("conductor", "0027_retention_policies"),
        ("conductor", "0028_name_of_stand_alone_tasks"),
        ("conductor", "0029_views_and_alerts"),
        ("conductor", "0030_outputs_of_runs_used_again"),
        ("conductor", "0031_files_of_runs"),
        ("conductor", "0032_age_of_groups"),
        ("conductor", "0033_events_replayed_and_listeners"),
        ("conductor", "0034_look_at_groups"),
        ("conductor", "0035_runs_of_a_schedule"),
        ("conductor", "0036_refused_webhooks"),
        ("conductor", "0037_operations_that_wait_for_approval"),
        ("conductor", "0038_spread_schedules"),
        ("conductor", "0039_tasks_in_peoples_hands"),
        ("conductor", "0040_failures_of_stand_alone_tasks"),
        ("conductor", "0041_quiet_hours_and_tiles"),
        ("conductor", "0042_rules_of_cases"),
        ("conductor", "0043_watches_of_groups"),
        ("conductor", "0044_stored_days"),
        ("conductor", "0045_archived_definitions"),
        ("conductor", "0046_labels_of_runs"),
        ("conductor", "0047_attempts_at_another_try"),
        ("conductor", "0048_requests_of_audit_entries"),
        ("conductor", "0049_age_of_groups_by_itself"),
        ("conductor", "0050_failures_by_task_name"),
        ("conductor", "0051_acts_on_groups_that_wait"),
        ("conductor", "0052_no_index_twice"),
        ("conductor", "0053_human_tasks"),
        ("conductor", "0054_workflow_tests"),
        ("conductor", "0055_webhook_waits"),
    ]

    initial = True

    dependencies = [
        ("auth", "__first__"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AccessRevision",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("revision", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=16)),
                ("threshold", models.IntegerField()),
                ("window_minutes", models.IntegerField()),
                ("repeat_minutes", models.IntegerField()),
                ("webhook", models.CharField(blank=True, default="", max_length=1000)),
                ("mail", models.CharField(blank=True, default="", max_length=254)),
                ("by", models.CharField(max_length=255)),
                ("next_at", conductor_app.models.fields.MomentField(default=9007199254740991)),
                ("rang_at", conductor_app.models.fields.MomentField(null=True)),
                ("quiet_from", models.SmallIntegerField(null=True)),
                ("quiet_until", models.SmallIntegerField(null=True)),
                ("zone", models.CharField(db_default="UTC", default="UTC", max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="CaseRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("workflow", models.CharField(max_length=255, unique=True)),
                ("holds", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="Catalogue",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("revision", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                ("ref", models.CharField(max_length=512)),
                ("turn", models.CharField(blank=True, default="", max_length=128)),
                ("name", models.CharField(max_length=512)),
                ("type", models.CharField(max_length=255)),
                ("status", models.CharField(max_length=24)),
                ("seq", models.IntegerField()),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("attempt_id", conductor_app.models.fields.IdField(max_length=64)),
                ("iteration", models.IntegerField(default=0)),
                ("loop_ref", models.CharField(blank=True, default="", max_length=512)),
                ("joined_by", models.CharField(blank=True, default="", max_length=512)),
                ("root", models.CharField(blank=True, default="", max_length=640)),
                ("is_permissive", models.BooleanField(default=False)),
                ("memo", conductor_app.models.fields.DocumentField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="Plan",
            fields=[
                ("hash", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("version", models.IntegerField()),
                ("document", conductor_app.models.fields.DocumentField()),
                ("created_at", conductor_app.models.fields.MomentField()),
            ],
        ),
        migrations.CreateModel(
            name="Preference",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="preference",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("choices", conductor_app.models.fields.DocumentField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="QueueHold",
            fields=[
                ("queue", models.CharField(max_length=640, primary_key=True, serialize=False)),
                ("until_at", conductor_app.models.fields.MomentField()),
                ("held_at", conductor_app.models.fields.MomentField()),
                ("by", models.CharField(max_length=255)),
                ("reason", models.TextField(blank=True, default="")),
            ],
        ),
        migrations.CreateModel(
            name="RetentionPolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("definition", models.CharField(blank=True, max_length=255, unique=True)),
                ("days", models.IntegerField()),
                ("failed_days", models.IntegerField()),
                ("keep_last", models.IntegerField(default=0)),
                ("changed_at", conductor_app.models.fields.MomentField()),
                ("by", models.CharField(max_length=255)),
            ],
            options={
                "verbose_name_plural": "retention policies",
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255, verbose_name="definition")),
                ("version", models.IntegerField(default=1)),
                ("status", models.CharField(max_length=16)),
                ("reason", models.TextField(blank=True, default="")),
                ("correlation_id", models.CharField(blank=True, default="", max_length=512)),
                ("priority", models.SmallIntegerField(default=0)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("ended_at", conductor_app.models.fields.MomentField(null=True)),
                ("last_retried_at", conductor_app.models.fields.MomentField(default=0)),
                ("wake_at", conductor_app.models.fields.MomentField(default=9007199254740991)),
                ("revision", models.IntegerField(default=0)),
                ("next_seq", models.IntegerField(default=1)),
                ("has_skips", models.BooleanField(default=False)),
                ("parent_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("parent_attempt_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("failed_attempt_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("failed_refs", conductor_app.models.fields.DocumentField(default=list)),
                ("failed_names", conductor_app.models.fields.DocumentField(default=list)),
                ("domains", conductor_app.models.fields.DocumentField(default=dict)),
                ("limit_key", models.CharField(blank=True, default="", max_length=512)),
                ("is_held", models.BooleanField(default=False)),
                ("started_by", models.CharField(blank=True, default="", max_length=255)),
                ("event", models.CharField(blank=True, default="", max_length=255)),
                ("idempotency_key", models.CharField(blank=True, max_length=255, null=True)),
                ("input", conductor_app.models.fields.DocumentField(default=dict)),
                ("output", conductor_app.models.fields.DocumentField(default=dict)),
                ("variables", conductor_app.models.fields.DocumentField(default=dict)),
                ("input_size", models.IntegerField(default=0)),
                ("output_size", models.IntegerField(default=0)),
                ("variables_size", models.IntegerField(default=0)),
                ("request_id", models.CharField(blank=True, max_length=255, null=True)),
                ("watched_as", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("watched_until", conductor_app.models.fields.MomentField(default=0)),
                ("schedule", models.CharField(blank=True, default="", max_length=255)),
                ("input_path", models.CharField(blank=True, default="", max_length=255)),
                ("output_path", models.CharField(blank=True, default="", max_length=255)),
                ("inbox", models.IntegerField(default=0)),
                (
                    "plan",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="conductor.plan",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Scheduler",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("is_paused", models.BooleanField(default=False)),
                ("changed_at", conductor_app.models.fields.MomentField(default=0)),
                ("changed_by", models.CharField(blank=True, default="", max_length=255)),
            ],
        ),
        migrations.CreateModel(
            name="ScopeRole",
            fields=[
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("id", models.CharField(max_length=512, primary_key=True, serialize=False, verbose_name="role id")),
                ("scopes", conductor_app.models.fields.DocumentField(default=list)),
                ("description", models.TextField(blank=True, default="")),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="Secret",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("tags", conductor_app.models.fields.DocumentField(default=list)),
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("sealed", models.TextField()),
            ],
            options={
                "ordering": ["name"],
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="StoredDay",
            fields=[
                ("day_at", conductor_app.models.fields.MomentField(primary_key=True, serialize=False)),
                ("bytes", models.BigIntegerField(default=0)),
                ("removed", models.IntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="SweepPass",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("began_at", conductor_app.models.fields.MomentField(default=0)),
                ("ended_at", conductor_app.models.fields.MomentField(default=0)),
                ("handled", models.IntegerField(default=0)),
                ("handled_in_all", models.BigIntegerField(default=0)),
                ("worked_at", conductor_app.models.fields.MomentField(null=True)),
                ("lag_ms", models.BigIntegerField(default=0)),
                ("error", models.TextField(blank=True, default="")),
                ("failed_at", conductor_app.models.fields.MomentField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="TaskDefinition",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255, unique=True)),
                ("document", conductor_app.models.fields.DocumentField(default=dict)),
                ("description", models.TextField(blank=True, default="")),
                ("concurrent_limit", models.IntegerField(default=0)),
                ("rate_count", models.IntegerField(default=0)),
                ("rate_seconds", models.IntegerField(default=1)),
                ("owner_email", models.CharField(blank=True, default="", max_length=255)),
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("revision", models.IntegerField(default=1)),
                ("archived_at", conductor_app.models.fields.MomentField(null=True)),
            ],
            options={
                "ordering": ["name"],
                "permissions": [("execute_taskdefinition", "Can poll and report tasks")],
            },
        ),
        migrations.CreateModel(
            name="Variable",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("tags", conductor_app.models.fields.DocumentField(default=list)),
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("value", models.TextField(blank=True, default="")),
            ],
            options={
                "ordering": ["name"],
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=200, unique=True)),
                ("document", conductor_app.models.fields.DocumentField(default=dict)),
                ("sealed", models.TextField(blank=True, default="")),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("refusals", models.IntegerField(db_default=0, default=0)),
                ("refused_at", conductor_app.models.fields.MomentField(null=True)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="WorkerHold",
            fields=[
                ("worker", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("held_at", conductor_app.models.fields.MomentField()),
                ("by", models.CharField(max_length=255)),
                ("reason", models.TextField(blank=True, default="")),
            ],
        ),
        migrations.CreateModel(
            name="WorkflowTest",
            fields=[
                ("id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("document", conductor_app.models.fields.DocumentField()),
                ("created_at", conductor_app.models.fields.MomentField(db_index=True)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
            ],
        ),
        migrations.CreateModel(
            name="Application",
            fields=[
                (
                    "id",
                    models.CharField(max_length=64, primary_key=True, serialize=False, verbose_name="application id"),
                ),
                ("name", models.CharField(max_length=255)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="application",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "id"],
            },
        ),
        migrations.CreateModel(
            name="AccessKey",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False, verbose_name="key id")),
                ("secret_hash", models.CharField(max_length=255)),
                ("is_active", models.BooleanField(default=True)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("used_at", conductor_app.models.fields.MomentField(null=True)),
                (
                    "application",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="keys", to="conductor.application"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Artifact",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task_id", conductor_app.models.fields.IdField(max_length=64)),
                ("number", models.IntegerField()),
                ("name", models.CharField(max_length=1024)),
                ("kind", models.CharField(max_length=16)),
                ("content_type", models.CharField(max_length=255)),
                ("content_encoding", models.CharField(blank=True, default="", max_length=64)),
                ("content_length", models.BigIntegerField(null=True)),
                ("details", conductor_app.models.fields.DocumentField(default=dict)),
                ("is_present", models.BooleanField(default=True)),
                ("path", models.CharField(blank=True, default="", max_length=255)),
                ("size", models.BigIntegerField(default=0)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("expires_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "indexes": [models.Index(fields=["expires_at"], name="artifact_by_expiry")],
                "constraints": [
                    models.UniqueConstraint(fields=("task_id", "number", "name"), name="one_artifact_per_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", conductor_app.models.fields.MomentField()),
                ("actor", models.CharField(max_length=255)),
                ("action", models.CharField(max_length=64)),
                ("object_type", models.CharField(max_length=32)),
                ("object_id", models.CharField(max_length=320)),
                ("reason", models.TextField(blank=True, default="")),
                ("facts", conductor_app.models.fields.DocumentField(default=dict)),
                (
                    "request_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default=conductor_app.telemetry.log_context.request_id,
                        max_length=128,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "indexes": [
                    models.Index(fields=["-at"], name="audit_by_time"),
                    models.Index(fields=["object_type", "object_id"], name="audit_of_object"),
                    models.Index(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=["request_id"],
                        name="audit_of_request",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkOperation",
            fields=[
                ("id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                ("action", models.CharField(max_length=32)),
                ("options", conductor_app.models.fields.DocumentField(default=dict)),
                ("selection", conductor_app.models.fields.DocumentField(default=dict)),
                ("excluded", conductor_app.models.fields.DocumentField(default=list)),
                ("state", models.CharField(default="GATHERING", max_length=16)),
                ("goes_on_as", models.CharField(blank=True, default="", max_length=16)),
                ("reason", models.TextField(blank=True, default="")),
                ("by", models.CharField(max_length=255)),
                ("rate", models.FloatField()),
                ("canary_size", models.IntegerField(default=0)),
                ("canary_share", models.IntegerField(default=100)),
                ("verdict", models.TextField(blank=True, default="")),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("updated_at", conductor_app.models.fields.MomentField()),
                ("ended_at", conductor_app.models.fields.MomentField(null=True)),
                ("watched_since", conductor_app.models.fields.MomentField(null=True)),
                ("due_at", conductor_app.models.fields.MomentField(default=9007199254740991)),
                ("paced_at", conductor_app.models.fields.MomentField(default=0)),
                ("held_until", conductor_app.models.fields.MomentField(default=0)),
                ("cursor", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("total", models.IntegerField(default=0)),
                ("done", models.IntegerField(default=0)),
                ("refused", models.IntegerField(default=0)),
                ("withdrawn", models.IntegerField(default=0)),
                ("approved_at", conductor_app.models.fields.MomentField(null=True)),
                ("approved_by", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("needs_approval", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["CANARY", "GATHERING", "PAUSED", "WATCHING", "WORKING"])),
                        fields=["due_at"],
                        name="bulk_due",
                    ),
                    models.Index(fields=["-created_at"], name="bulk_by_time"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["CANARY", "DONE", "GATHERING", "PAUSED", "STOPPED", "WATCHING", "WORKING"])
                        ),
                        name="bulk_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", False), ("state__in", ["DONE", "STOPPED"])),
                            models.Q(
                                ("ended_at__isnull", True),
                                ("state__in", ["CANARY", "GATHERING", "PAUSED", "WATCHING", "WORKING"]),
                            ),
                            _connector="OR",
                        ),
                        name="bulk_has_ended_exactly_when_final",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CachedResult",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255)),
                ("digest", models.CharField(max_length=64)),
                ("attempt_id", conductor_app.models.fields.IdField(max_length=64)),
                ("expires_at", conductor_app.models.fields.MomentField(db_index=True)),
                ("run_id", conductor_app.models.fields.IdField(blank=True, db_default="", default="", max_length=64)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("digest", "name"), name="one_result_per_key")],
            },
        ),
        migrations.CreateModel(
            name="Client",
            fields=[
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("id", models.CharField(max_length=255, primary_key=True, serialize=False, verbose_name="client id")),
                ("sealed", models.TextField()),
                ("scopes", conductor_app.models.fields.DocumentField(default=list)),
                ("description", models.TextField(blank=True, default="")),
                ("expires_at", conductor_app.models.fields.MomentField()),
                ("is_disabled", models.BooleanField(default=False, verbose_name="disabled")),
                ("is_deleted_when_expired", models.BooleanField(default=False, verbose_name="deleted when expired")),
                ("rotated_at", conductor_app.models.fields.MomentField(default=0)),
                ("used_at", conductor_app.models.fields.MomentField(default=0)),
            ],
            options={
                "ordering": ["id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_deleted_when_expired", True)),
                        fields=["expires_at"],
                        name="client_to_forget",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DefinitionDraft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=16)),
                ("name", models.CharField(blank=True, default="", max_length=255)),
                ("author", models.CharField(max_length=255)),
                ("base", models.CharField(blank=True, default="", max_length=64)),
                ("text", models.TextField()),
                ("updated_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("author", "kind", "name"), name="one_draft_per_definition_and_author"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Dependency",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task_id", conductor_app.models.fields.IdField(max_length=64)),
                ("required_id", conductor_app.models.fields.IdField(max_length=64)),
                ("is_satisfied", models.BooleanField(default=False)),
                ("expires_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "verbose_name_plural": "dependencies",
                "indexes": [
                    models.Index(fields=["task_id"], name="dependency_of_task"),
                    models.Index(
                        condition=models.Q(("is_satisfied", False)), fields=["task_id"], name="dependency_unsatisfied"
                    ),
                    models.Index(
                        condition=models.Q(("is_satisfied", False)),
                        fields=["required_id", "task_id"],
                        name="dependency_to_satisfy",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("required_id", "task_id"), name="one_dependency_per_pair")
                ],
            },
        ),
        migrations.CreateModel(
            name="EventDelivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event", models.CharField(max_length=255)),
                ("message_id", models.CharField(max_length=255)),
                ("source", models.CharField(blank=True, default="", max_length=64)),
                ("received_at", conductor_app.models.fields.MomentField()),
                ("payload", conductor_app.models.fields.DocumentField(null=True)),
                ("payload_size", models.IntegerField(default=0)),
                ("duplicates", models.IntegerField(default=0)),
                (
                    "replay_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="replays",
                        to="conductor.eventdelivery",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "event deliveries",
            },
        ),
        migrations.CreateModel(
            name="EventAction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("handler", models.CharField(max_length=255)),
                ("position", models.IntegerField()),
                ("action", models.CharField(max_length=64)),
                ("document", conductor_app.models.fields.DocumentField(default=dict)),
                ("status", models.CharField(default="IN_PROGRESS", max_length=16)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("ended_at", conductor_app.models.fields.MomentField(null=True)),
                ("run_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("output", conductor_app.models.fields.DocumentField(default=dict)),
                ("error", models.TextField(blank=True, default="")),
                (
                    "delivery",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="actions",
                        to="conductor.eventdelivery",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="EventHandler",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255, unique=True)),
                ("event", models.CharField(max_length=255)),
                ("is_active", models.BooleanField(default=False)),
                ("document", conductor_app.models.fields.DocumentField(default=dict)),
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("revision", models.IntegerField(default=1)),
            ],
            options={
                "ordering": ["name"],
                "indexes": [models.Index(fields=["event", "is_active"], name="handler_of_event")],
            },
        ),
        migrations.CreateModel(
            name="EventListener",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event", models.CharField(max_length=255)),
                ("process", models.CharField(max_length=128)),
                ("seen_at", conductor_app.models.fields.MomentField()),
                ("connected_at", conductor_app.models.fields.MomentField(null=True)),
                ("last_message_at", conductor_app.models.fields.MomentField(null=True)),
                ("error", models.TextField(blank=True, default="")),
                ("failed_at", conductor_app.models.fields.MomentField(null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["seen_at"], name="listener_by_sight")],
                "constraints": [
                    models.UniqueConstraint(fields=("event", "process"), name="one_listener_per_event_and_process")
                ],
            },
        ),
        migrations.CreateModel(
            name="EventVerdict",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("handler", models.CharField(max_length=255)),
                ("at", conductor_app.models.fields.MomentField()),
                ("outcome", models.CharField(max_length=16)),
                ("condition", models.TextField(blank=True, default="")),
                ("seen", conductor_app.models.fields.DocumentField(default=dict)),
                ("value", conductor_app.models.fields.DocumentField(null=True)),
                ("error", models.TextField(blank=True, default="")),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="verdicts",
                        to="conductor.eventdelivery",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FailureGroup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.CharField(max_length=40, unique=True)),
                ("definition", models.CharField(max_length=255)),
                ("ref", models.CharField(blank=True, default="", max_length=512)),
                ("message", models.TextField(blank=True, default="")),
                ("sample", models.TextField(blank=True, default="")),
                ("sample_run_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("sample_attempt_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("first_at", conductor_app.models.fields.MomentField()),
                ("last_at", conductor_app.models.fields.MomentField()),
                ("count", models.BigIntegerField(default=0)),
                ("state", models.CharField(default="OPEN", max_length=16)),
                ("assignee", models.CharField(blank=True, default="", max_length=255)),
                ("note", models.TextField(blank=True, default="")),
                ("resolved_version", models.IntegerField(null=True)),
                ("resolved_build", models.CharField(blank=True, default="", max_length=255)),
                ("earlier_builds", conductor_app.models.fields.DocumentField(default=list)),
                (
                    "merged_into",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="parts",
                        to="conductor.failuregroup",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Failure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.CharField(max_length=40)),
                ("run_id", conductor_app.models.fields.IdField(max_length=64)),
                ("attempt_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("definition", models.CharField(max_length=255)),
                ("version", models.IntegerField()),
                ("ref", models.CharField(blank=True, default="", max_length=512)),
                ("message", models.TextField(blank=True, default="")),
                ("queue", models.CharField(blank=True, default="", max_length=640)),
                ("worker", models.CharField(blank=True, default="", max_length=255)),
                ("build", models.CharField(blank=True, default="", max_length=255)),
                ("at", conductor_app.models.fields.MomentField()),
                ("task_id", conductor_app.models.fields.IdField(blank=True, db_default="", default="", max_length=64)),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="conductor.failuregroup",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="FailureTally",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("hour_at", conductor_app.models.fields.MomentField()),
                ("version", models.IntegerField()),
                ("build", models.CharField(blank=True, default="", max_length=255)),
                ("count", models.IntegerField(default=0)),
                (
                    "group",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="conductor.failuregroup"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "hourly failure counts",
            },
        ),
        migrations.CreateModel(
            name="FileHandle",
            fields=[
                ("id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                ("run_id", conductor_app.models.fields.IdField(db_index=True, max_length=64)),
                ("attempt_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("name", models.CharField(blank=True, default="", max_length=255)),
                ("content_type", models.CharField(max_length=255)),
                ("status", models.CharField(default="UPLOADING", max_length=16)),
                ("path", models.CharField(blank=True, default="", max_length=255)),
                ("size", models.BigIntegerField(null=True)),
                ("digest", models.CharField(blank=True, default="", max_length=64)),
                ("upload_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("parts", conductor_app.models.fields.DocumentField(default=dict)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("updated_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "UPLOADING")), fields=["created_at"], name="file_unfinished"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FormTemplate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("name", models.CharField(max_length=255)),
                ("version", models.IntegerField(default=1)),
                ("document", conductor_app.models.fields.DocumentField(default=dict)),
            ],
            options={
                "ordering": ["name", "-version"],
                "constraints": [
                    models.UniqueConstraint(fields=("name", "version"), name="one_form_template_per_name_and_version")
                ],
            },
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("target_type", models.CharField(max_length=32)),
                ("target_id", models.CharField(max_length=512)),
                ("access", models.CharField(max_length=16)),
                ("granted_at", conductor_app.models.fields.MomentField()),
                ("granted_by", models.CharField(blank=True, default="", max_length=255)),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="grants",
                        to="auth.group",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="grants",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("execute_domain", "Can poll in task domains"),
                    ("add_event_handler", "Can add event handlers"),
                    ("view_event_handler", "Can view event handlers"),
                    ("change_event_handler", "Can change event handlers"),
                    ("delete_event_handler", "Can delete event handlers"),
                    ("execute_event_handler", "Can execute event handlers"),
                    ("add_schema", "Can add schemas"),
                    ("view_schema", "Can view schemas"),
                    ("change_schema", "Can change schemas"),
                    ("delete_schema", "Can delete schemas"),
                    ("execute_schema", "Can execute schemas"),
                    ("add_webhook", "Can add webhooks"),
                    ("view_webhook", "Can view webhooks"),
                    ("change_webhook", "Can change webhooks"),
                    ("delete_webhook", "Can delete webhooks"),
                    ("execute_webhook", "Can execute webhooks"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Group",
            fields=[
                ("id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                ("scheduler_id", models.CharField(max_length=38)),
                ("expires_at", conductor_app.models.fields.MomentField()),
                ("sealed_at", conductor_app.models.fields.MomentField(null=True)),
                ("created_at", conductor_app.models.fields.MomentField(db_default=0, default=0)),
            ],
            options={
                "verbose_name": "task group",
                "indexes": [
                    models.Index(fields=["expires_at"], name="group_by_expiry"),
                    models.Index(fields=["-created_at", "id"], name="group_by_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="GroupFacts",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("role", models.CharField(blank=True, max_length=100, null=True, unique=True)),
                ("description", models.TextField(blank=True, default="")),
                ("default_access", conductor_app.models.fields.DocumentField(default=dict)),
                ("contact", conductor_app.models.fields.DocumentField(default=dict)),
                (
                    "group",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="profile", to="auth.group"
                    ),
                ),
                ("roles", models.ManyToManyField(blank=True, related_name="given_to", to="auth.group")),
            ],
        ),
        migrations.CreateModel(
            name="GroupWatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("group_id", conductor_app.models.fields.IdField(max_length=64)),
                ("event", models.CharField(max_length=16)),
                ("mail", models.CharField(max_length=254)),
                ("by", models.CharField(max_length=255)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("looked_at", conductor_app.models.fields.MomentField(default=0)),
                ("told_at", conductor_app.models.fields.MomentField(null=True)),
            ],
            options={
                "verbose_name_plural": "group watches",
                "indexes": [
                    models.Index(fields=["group_id"], name="watch_of_group"),
                    models.Index(
                        condition=models.Q(("told_at__isnull", True)),
                        fields=["looked_at", "id"],
                        name="watch_to_look_at",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HeldAct",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("group_id", conductor_app.models.fields.IdField(max_length=64)),
                ("verb", models.CharField(max_length=16)),
                ("priority", models.SmallIntegerField(default=0)),
                ("task_ids", conductor_app.models.fields.DocumentField(default=list)),
                ("by", models.CharField(max_length=255)),
                ("reason", models.TextField(blank=True, default="")),
                ("created_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "indexes": [models.Index(fields=["group_id"], name="held_act_of_group")],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("to", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("subject", models.CharField(max_length=32)),
                ("facts", conductor_app.models.fields.DocumentField(default=dict)),
                ("sent_at", conductor_app.models.fields.MomentField()),
                ("due_at", conductor_app.models.fields.MomentField()),
                ("tries", models.IntegerField(default=0)),
                ("error", models.TextField(blank=True, default="")),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("subject", "publish"), _negated=True),
                        fields=["due_at", "id"],
                        name="message_due",
                    ),
                    models.Index(
                        condition=models.Q(("subject", "publish")), fields=["due_at", "id"], name="message_to_publish"
                    ),
                    models.Index(condition=models.Q(("subject", "group")), fields=["to"], name="message_about_group"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("group_id", conductor_app.models.fields.IdField(max_length=64)),
                ("name", models.CharField(max_length=40)),
                ("key", models.CharField(max_length=400)),
                ("routes", conductor_app.models.fields.DocumentField(default=list)),
                ("payload", conductor_app.models.fields.DocumentField(default=dict)),
                ("sent_at", conductor_app.models.fields.MomentField()),
                ("due_at", conductor_app.models.fields.MomentField(default=9007199254740991)),
                ("tries", models.IntegerField(default=0)),
                ("error", models.TextField(blank=True, default="")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["group_id", "id"], name="notice_of_group"),
                    models.Index(
                        condition=models.Q(("due_at__lt", 9007199254740991)), fields=["due_at", "id"], name="notice_due"
                    ),
                    models.Index(fields=["task_id", "group_id", "id"], name="notice_of_task"),
                ],
            },
        ),
        migrations.CreateModel(
            name="PersonsTask",
            fields=[
                (
                    "task",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="persons",
                        serialize=False,
                        to="conductor.task",
                    ),
                ),
                ("taken_by", models.CharField(blank=True, default="", max_length=255)),
                ("taken_at", conductor_app.models.fields.MomentField(null=True)),
                ("assignee", models.CharField(blank=True, default="", max_length=255)),
                ("is_group", models.BooleanField(default=False)),
                ("is_reassigned", models.BooleanField(default=False)),
                ("due_at", conductor_app.models.fields.MomentField(null=True)),
                ("changed_at", conductor_app.models.fields.MomentField(null=True)),
                ("changed_by", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("followers", conductor_app.models.fields.DocumentField(default=None, null=True)),
                ("is_external", models.BooleanField(db_default=False, default=False)),
                ("is_taker_external", models.BooleanField(db_default=False, default=False)),
            ],
        ),
        migrations.CreateModel(
            name="Solo",
            fields=[
                (
                    "task",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="solo",
                        serialize=False,
                        to="conductor.task",
                    ),
                ),
                ("group_id", conductor_app.models.fields.IdField(max_length=64)),
                ("scheduler_id", models.CharField(max_length=38)),
                ("project_id", models.CharField(max_length=500)),
                ("queue", models.CharField(max_length=640)),
                ("priority", models.SmallIntegerField()),
                ("retries", models.SmallIntegerField()),
                ("retries_left", models.SmallIntegerField()),
                ("deadline_at", conductor_app.models.fields.MomentField()),
                ("expires_at", conductor_app.models.fields.MomentField()),
                ("wake_at", conductor_app.models.fields.MomentField()),
                ("grace_ms", models.BigIntegerField()),
                ("lease_ms", models.BigIntegerField()),
                ("accepts_failure", models.BooleanField(default=False)),
                ("ever_resolved", models.BooleanField(default=False)),
                ("revision", models.IntegerField(default=0)),
                ("tags", conductor_app.models.fields.DocumentField(default=dict)),
                ("routes", conductor_app.models.fields.DocumentField(default=list)),
                ("definition", conductor_app.models.fields.DocumentField(default=dict)),
            ],
            options={
                "verbose_name": "standalone task",
            },
        ),
        migrations.CreateModel(
            name="Poller",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task_type", models.CharField(max_length=512)),
                ("domain", models.CharField(blank=True, default="", max_length=128)),
                ("worker", models.CharField(blank=True, default="", max_length=255)),
                ("polled_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("task_type", "domain", "worker"), name="one_poller_per_type_domain_worker"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Profile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("contact", conductor_app.models.fields.DocumentField(default=dict)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="profile", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("name", models.CharField(max_length=128, primary_key=True, serialize=False)),
                ("description", models.TextField(blank=True, default="")),
                ("expires_at", conductor_app.models.fields.MomentField()),
                ("last_active_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "indexes": [models.Index(fields=["expires_at"], name="queue_by_expiry")],
            },
        ),
        migrations.CreateModel(
            name="Ring",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", conductor_app.models.fields.MomentField()),
                ("sentence", models.TextField()),
                ("channel", models.CharField(max_length=16)),
                ("heard_at", conductor_app.models.fields.MomentField(null=True)),
                ("tries", models.IntegerField(default=0)),
                ("error", models.TextField(blank=True, default="")),
                (
                    "alert",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="firings",
                        to="conductor.alert",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="task",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="tasks",
                to="conductor.run",
            ),
        ),
        migrations.CreateModel(
            name="InboxMessage",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("id", conductor_app.models.fields.IdField(max_length=64)),
                ("received_at", conductor_app.models.fields.MomentField()),
                ("payload", conductor_app.models.fields.DocumentField(default=dict)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="inbox_messages",
                        to="conductor.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="HistoryEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("revision", models.IntegerField()),
                ("at", conductor_app.models.fields.MomentField()),
                ("by", models.CharField(blank=True, default="", max_length=255)),
                ("reason", models.TextField(blank=True, default="")),
                ("effects", conductor_app.models.fields.DocumentField(default=list)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="history",
                        to="conductor.run",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "history entries",
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="conductor.run",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="conductor.task",
                    ),
                ),
                ("number", models.IntegerField(default=0)),
                ("seq", models.IntegerField()),
                ("name", models.CharField(blank=True, default="", max_length=512)),
                ("domain", models.CharField(blank=True, default="", max_length=128)),
                ("queue", models.CharField(blank=True, default="", max_length=640)),
                ("priority", models.SmallIntegerField(default=0)),
                ("scheduled_at", conductor_app.models.fields.MomentField()),
                ("visible_at", conductor_app.models.fields.MomentField()),
                ("pending_since", conductor_app.models.fields.MomentField()),
                ("ends_at", conductor_app.models.fields.MomentField(default=9007199254740991)),
                ("total_ends_at", conductor_app.models.fields.MomentField(default=9007199254740991)),
                ("lease_ms", models.BigIntegerField(default=0)),
                ("timeout_ms", models.BigIntegerField(default=0)),
                ("delay_ms", models.BigIntegerField(default=0)),
                ("concurrent_limit", models.IntegerField(default=0)),
                ("rate_count", models.IntegerField(default=0)),
                ("rate_seconds", models.IntegerField(default=1)),
                ("input_size", models.IntegerField(default=0)),
                ("tells_start", models.BooleanField(default=False)),
                ("previous_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("child_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("input", conductor_app.models.fields.DocumentField(default=dict)),
                ("input_path", models.CharField(blank=True, default="", max_length=255)),
                ("cause", models.CharField(blank=True, db_default="", default="", max_length=16)),
                # The columns that a claim and a report change come last: PostgreSQL logs an update from the first
                # changed byte of a row to the last one.
                ("status", models.CharField(max_length=24)),
                ("worker", models.CharField(blank=True, default="", max_length=255)),
                ("callback_ms", models.BigIntegerField(default=0)),
                ("started_at", conductor_app.models.fields.MomentField(null=True)),
                ("claimed_at", conductor_app.models.fields.MomentField(null=True)),
                ("updated_at", conductor_app.models.fields.MomentField(null=True)),
                ("ended_at", conductor_app.models.fields.MomentField(null=True)),
                ("lease_ends_at", conductor_app.models.fields.MomentField(null=True)),
                ("due_at", conductor_app.models.fields.MomentField(default=9007199254740991)),
                ("poll_count", models.IntegerField(default=0)),
                ("output_size", models.IntegerField(default=0)),
                ("output", conductor_app.models.fields.DocumentField(default=dict)),
                ("output_path", models.CharField(blank=True, default="", max_length=255)),
                ("reason", models.TextField(blank=True, default="")),
            ],
        ),
        migrations.CreateModel(
            name="RunLabel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=64)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="labels",
                        to="conductor.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("owner", models.CharField(max_length=255)),
                ("is_shared", models.BooleanField(default=False)),
                ("selection", conductor_app.models.fields.DocumentField(default=dict)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("is_tile", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "indexes": [models.Index(condition=models.Q(("is_shared", True)), fields=["name"], name="view_shared")],
                "constraints": [models.UniqueConstraint(fields=("owner", "name"), name="one_view_per_owner_and_name")],
            },
        ),
        migrations.AddField(
            model_name="alert",
            name="view",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="alerts", to="conductor.savedview"
            ),
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255, unique=True)),
                ("document", conductor_app.models.fields.DocumentField(default=dict)),
                ("tags", conductor_app.models.fields.DocumentField(default=list)),
                ("workflow_name", models.CharField(max_length=255, verbose_name="definition")),
                ("overlap", models.CharField(default="ALLOW", max_length=16)),
                ("is_paused", models.BooleanField(default=False)),
                ("paused_reason", models.TextField(blank=True, default="")),
                ("next_run_at", conductor_app.models.fields.MomentField(null=True)),
                ("next_entry", models.IntegerField(default=0)),
                ("revision", models.IntegerField(default=1)),
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("next_slot_at", conductor_app.models.fields.MomentField(null=True)),
            ],
            options={
                "ordering": ["name"],
                "permissions": [("execute_schedule", "Can run schedules")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_run_at__isnull", False)), fields=["next_run_at"], name="schedule_due"
                    ),
                    models.Index(fields=["workflow_name", "name"], name="schedule_by_workflow"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("is_paused", False), ("next_run_at__isnull", True), _connector="OR"),
                        name="paused_schedule_has_no_next_run",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ScheduleExecution",
            fields=[
                ("id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                ("schedule_name", models.CharField(max_length=255)),
                ("workflow_name", models.CharField(max_length=255, verbose_name="definition")),
                ("run_id", conductor_app.models.fields.IdField(blank=True, default="", max_length=64)),
                ("state", models.CharField(max_length=16)),
                ("slot_at", conductor_app.models.fields.MomentField()),
                ("executed_at", conductor_app.models.fields.MomentField()),
                ("cron_expression", models.TextField(blank=True, default="")),
                ("zone_id", models.CharField(default="UTC", max_length=64)),
                ("waits_for_others", models.BooleanField(default=False)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("reason", models.TextField(blank=True, default="")),
                ("trace", models.TextField(blank=True, default="")),
                ("request", conductor_app.models.fields.DocumentField(default=dict)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-slot_at", "id"], name="execution_by_slot"),
                    models.Index(fields=["schedule_name", "-slot_at"], name="execution_of_schedule"),
                    models.Index(fields=["state", "-slot_at"], name="execution_by_state"),
                    models.Index(fields=["workflow_name", "-slot_at"], name="execution_by_workflow"),
                    models.Index(fields=["executed_at"], name="execution_by_time"),
                    models.Index(
                        condition=models.Q(("state", "POLLED")),
                        fields=["schedule_name", "slot_at"],
                        name="execution_waiting",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["EXECUTED", "FAILED", "POLLED"])),
                        name="execution_state_is_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SchemaDefinition",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255)),
                ("version", models.IntegerField(default=1)),
                ("document", conductor_app.models.fields.DocumentField(default=dict)),
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
            ],
            options={
                "ordering": ["name", "-version"],
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("name", "version"), name="one_schema_per_name_and_version")
                ],
            },
        ),
        migrations.CreateModel(
            name="SimulationCase",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("workflow", models.CharField(max_length=255)),
                ("name", models.CharField(max_length=120)),
                ("input", conductor_app.models.fields.DocumentField(default=dict)),
                ("outcomes", conductor_app.models.fields.DocumentField(default=dict)),
                ("expected", conductor_app.models.fields.DocumentField(default=dict)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("workflow", "name"), name="one_case_per_workflow_and_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="StoredPayload",
            fields=[
                ("path", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("size", models.BigIntegerField(null=True)),
                ("created_at", conductor_app.models.fields.MomentField()),
                ("expires_at", conductor_app.models.fields.MomentField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="payload_to_forget",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PayloadUse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("run_id", conductor_app.models.fields.IdField(max_length=64)),
                (
                    "payload",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="conductor.storedpayload",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("object_type", models.CharField(max_length=32)),
                ("object_name", models.CharField(max_length=255)),
                ("key", models.CharField(max_length=128)),
                ("value", models.CharField(max_length=128)),
            ],
            options={
                "indexes": [models.Index(fields=["key", "value"], name="tag_by_value")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("object_type", "object_name", "key", "value"), name="one_tag_per_object_key_and_value"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Tally",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=8)),
                ("name", models.CharField(max_length=640)),
                ("at", conductor_app.models.fields.MomentField()),
                ("scheduled", models.IntegerField(default=0)),
                ("started", models.IntegerField(default=0)),
                ("done", models.IntegerField(default=0)),
                ("failed", models.IntegerField(default=0)),
                ("busy_ms", models.BigIntegerField(default=0)),
            ],
            options={
                "verbose_name_plural": "minute counts",
                "indexes": [models.Index(fields=["at"], name="tally_by_time")],
                "constraints": [models.UniqueConstraint(fields=("kind", "name", "at"), name="one_tally_per_minute")],
            },
        ),
        migrations.CreateModel(
            name="TaskLog",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt_id", conductor_app.models.fields.IdField(max_length=64)),
                ("at", conductor_app.models.fields.MomentField()),
                ("line", models.TextField()),
            ],
            options={
                "indexes": [models.Index(fields=["attempt_id", "at", "id"], name="log_of_attempt")],
            },
        ),
        migrations.CreateModel(
            name="UsualDuration",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255)),
                ("version", models.IntegerField()),
                ("ref", models.CharField(blank=True, default="", max_length=512)),
                ("count", models.IntegerField()),
                ("p50_ms", models.BigIntegerField()),
                ("p95_ms", models.BigIntegerField()),
                ("measured_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("name", "version", "ref"), name="one_usual_duration_per_step")
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookPaths",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("workflow", models.CharField(max_length=255)),
                ("digest", models.CharField(max_length=64)),
                ("paths", conductor_app.models.fields.DocumentField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("workflow", "digest"), name="one_row_per_workflow_and_paths")
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookWait",
            fields=[
                ("attempt_id", conductor_app.models.fields.IdField(max_length=64, primary_key=True, serialize=False)),
                ("workflow", models.CharField(max_length=255)),
                ("version", models.IntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("created_at", conductor_app.models.fields.MomentField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["workflow", "digest", "created_at"], name="webhook_wait_by_digest"),
                    models.Index(fields=["created_at"], name="webhook_wait_by_time"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("queue", models.CharField(max_length=128)),
                ("group", models.CharField(max_length=38)),
                ("name", models.CharField(max_length=38)),
                ("first_claim_at", conductor_app.models.fields.MomentField()),
                ("last_active_at", conductor_app.models.fields.MomentField(null=True)),
                ("expires_at", conductor_app.models.fields.MomentField()),
                ("quarantine_until", conductor_app.models.fields.MomentField(default=0)),
                ("quarantine_log", conductor_app.models.fields.DocumentField(default=list)),
            ],
            options={
                "indexes": [models.Index(fields=["expires_at"], name="worker_by_expiry")],
                "constraints": [
                    models.UniqueConstraint(fields=("queue", "group", "name"), name="one_worker_per_queue")
                ],
            },
        ),
        migrations.CreateModel(
            name="WorkflowDefinition",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255)),
                ("version", models.IntegerField(default=1)),
                ("document", conductor_app.models.fields.DocumentField(default=dict)),
                ("description", models.TextField(blank=True, default="")),
                ("failure_workflow", models.CharField(blank=True, default="", max_length=255)),
                ("rate_limit_key", models.CharField(blank=True, default="", max_length=512)),
                ("concurrent_limit", models.IntegerField(default=0)),
                ("owner_email", models.CharField(blank=True, default="", max_length=255)),
                ("created_at", conductor_app.models.fields.MomentField(default=0)),
                ("created_by", models.CharField(blank=True, default="", max_length=255)),
                ("updated_at", conductor_app.models.fields.MomentField(default=0)),
                ("updated_by", models.CharField(blank=True, default="", max_length=255)),
                ("revision", models.IntegerField(default=1)),
                ("archived_at", conductor_app.models.fields.MomentField(null=True)),
            ],
            options={
                "ordering": ["name", "-version"],
                "permissions": [("execute_workflowdefinition", "Can start workflows")],
                "constraints": [
                    models.UniqueConstraint(fields=("name", "version"), name="one_definition_per_name_and_version")
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.IntegerField()),
                ("run_id", conductor_app.models.fields.IdField(max_length=64)),
                ("outcome", models.CharField(default="WAITING", max_length=16)),
                ("answer", models.TextField(blank=True, default="")),
                ("at", conductor_app.models.fields.MomentField(null=True)),
                (
                    "operation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="conductor.bulkoperation",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["operation", "outcome", "number"], name="bulk_item_by_outcome")],
                "constraints": [
                    models.UniqueConstraint(fields=("operation", "run_id"), name="one_item_per_operation_and_run")
                ],
            },
        ),
        migrations.AddIndex(
            model_name="eventdelivery",
            index=models.Index(fields=["-received_at", "-id"], name="delivery_by_time"),
        ),
        migrations.AddIndex(
            model_name="eventdelivery",
            index=models.Index(fields=["event", "-received_at"], name="delivery_of_event"),
        ),
        migrations.AddConstraint(
            model_name="eventdelivery",
            constraint=models.UniqueConstraint(fields=("event", "message_id"), name="one_delivery_per_message"),
        ),
        migrations.AddIndex(
            model_name="eventaction",
            index=models.Index(fields=["handler", "-created_at"], name="action_of_handler"),
        ),
        migrations.AddIndex(
            model_name="eventaction",
            index=models.Index(condition=models.Q(("status", "FAILED")), fields=["-created_at"], name="action_failed"),
        ),
        migrations.AddConstraint(
            model_name="eventaction",
            constraint=models.UniqueConstraint(
                fields=("delivery", "handler", "position"), name="one_action_per_delivery_handler_and_position"
            ),
        ),
        migrations.AddIndex(
            model_name="eventverdict",
            index=models.Index(fields=["handler", "-at"], name="verdict_of_handler"),
        ),
        migrations.AddIndex(
            model_name="eventverdict",
            index=models.Index(fields=["outcome", "-at"], name="verdict_by_outcome"),
        ),
        migrations.AddIndex(
            model_name="failuregroup",
            index=models.Index(fields=["state", "-last_at"], name="failure_group_by_state"),
        ),
        migrations.AddIndex(
            model_name="failuregroup",
            index=models.Index(fields=["-last_at"], name="failure_group_by_time"),
        ),
        migrations.AddIndex(
            model_name="failuregroup",
            index=models.Index(fields=["definition", "-last_at"], name="failure_group_of_name"),
        ),
        migrations.AddConstraint(
            model_name="failuregroup",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["ACKNOWLEDGED", "IGNORED", "OPEN", "REGRESSED", "RESOLVED"])),
                name="failure_state_is_known",
            ),
        ),
        migrations.AddIndex(
            model_name="failure",
            index=models.Index(
                condition=models.Q(("group__isnull", True)), fields=["id", "at"], name="failure_to_count"
            ),
        ),
        migrations.AddIndex(
            model_name="failure",
            index=models.Index(
                condition=models.Q(("group__isnull", False)), fields=["group", "-at", "run_id"], name="failure_of_group"
            ),
        ),
        migrations.AddIndex(
            model_name="failure",
            index=models.Index(fields=["run_id"], name="failure_of_run"),
        ),
        migrations.AddIndex(
            model_name="failure",
            index=models.Index(fields=["at"], name="failure_by_time"),
        ),
        migrations.AddIndex(
            model_name="failure",
            index=models.Index(
                condition=models.Q(("task_id", ""), _negated=True), fields=["task_id"], name="failure_of_task"
            ),
        ),
        migrations.AddConstraint(
            model_name="failuretally",
            constraint=models.UniqueConstraint(
                fields=("group", "hour_at", "version", "build"), name="one_tally_per_hour"
            ),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(fields=["target_type", "target_id"], name="grant_by_target"),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(("user__isnull", False), ("group__isnull", False), _connector="XOR"),
                name="grant_has_one_subject",
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.UniqueConstraint(
                condition=models.Q(("user__isnull", False)),
                fields=("user", "target_type", "target_id", "access"),
                name="one_grant_per_user_target_and_access",
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.UniqueConstraint(
                condition=models.Q(("group__isnull", False)),
                fields=("group", "target_type", "target_id", "access"),
                name="one_grant_per_group_target_and_access",
            ),
        ),
        migrations.AddIndex(
            model_name="personstask",
            index=models.Index(
                condition=models.Q(("taken_by", ""), _negated=True),
                fields=["taken_by", "-taken_at"],
                name="persons_task_by_taker",
            ),
        ),
        migrations.AddIndex(
            model_name="solo",
            index=models.Index(fields=["group_id", "task"], name="solo_by_group"),
        ),
        migrations.AddIndex(
            model_name="solo",
            index=models.Index(
                condition=models.Q(("wake_at__lt", 9007199254740991)), fields=["wake_at"], name="solo_to_wake"
            ),
        ),
        migrations.AddIndex(
            model_name="solo",
            index=models.Index(
                condition=models.Q(("ever_resolved", False)), fields=["group_id"], name="solo_unresolved"
            ),
        ),
        migrations.AddIndex(
            model_name="solo",
            index=models.Index(fields=["expires_at"], name="solo_by_expiry"),
        ),
        migrations.AddIndex(
            model_name="ring",
            index=models.Index(fields=["alert", "-at"], name="ring_of_alert"),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("status__in", ["ACTIVE", "BLOCKED"])), fields=["run"], name="task_open"
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("joined_by", ""), _negated=True),
                fields=["run", "joined_by", "turn", "status"],
                name="task_joined",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("loop_ref", ""), _negated=True),
                fields=["run", "loop_ref", "turn"],
                name="task_in_loop",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("status__in", ["COMPLETED_WITH_ERRORS", "SKIPPED"])),
                fields=["status"],
                name="task_ended_oddly",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("type", "HUMAN")), fields=["status", "created_at"], name="task_of_people"
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "status__in",
                        [
                            "ACTIVE",
                            "BLOCKED",
                            "CANCELED",
                            "COMPLETED",
                            "COMPLETED_WITH_ERRORS",
                            "FAILED",
                            "SKIPPED",
                            "TIMED_OUT",
                        ],
                    )
                ),
                name="task_status_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.UniqueConstraint(fields=("run", "ref", "turn"), name="one_task_per_run_ref_and_turn"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["status", "-created_at"], name="run_by_status"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status__in", ["PAUSED", "RUNNING"])), fields=["wake_at"], name="run_to_wake"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status__in", ["PAUSED", "RUNNING"]), models.Q(("limit_key", ""), _negated=True)),
                fields=["name", "limit_key", "created_at"],
                name="run_by_limit",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status__in", ["PAUSED", "RUNNING"]), models.Q(("schedule", ""), _negated=True)),
                fields=["schedule"],
                name="run_by_schedule",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                fields=["-created_at", "id", "parent_id", "version", "priority", "started_by"], name="run_by_start"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["name", "-created_at", "version", "status"], name="run_by_definition"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("correlation_id", ""), _negated=True),
                fields=["correlation_id", "-created_at"],
                name="run_by_correlation",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("parent_id", ""), _negated=True),
                fields=["parent_id", "-created_at"],
                name="run_by_parent",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("event", ""), _negated=True), fields=["event", "-created_at"], name="run_by_event"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("limit_key", ""), _negated=True),
                fields=["limit_key", "-created_at"],
                name="run_by_limit_key",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("reason", ""), _negated=True), fields=["-created_at"], name="run_with_reason"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("failed_refs", []), _negated=True), fields=["-created_at"], name="run_with_failures"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("schedule", ""), _negated=True),
                fields=["schedule", "-created_at"],
                name="run_of_schedule",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", False)), fields=["ended_at", "status"], name="run_by_end"
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ["COMPLETED", "FAILED", "PAUSED", "RUNNING", "TERMINATED", "TIMED_OUT"])
                ),
                name="run_status_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("status__in", ["COMPLETED", "FAILED", "TERMINATED", "TIMED_OUT"]), ("ended_at__isnull", False)
                    ),
                    models.Q(
                        ("status__in", ["PAUSED", "RUNNING"]), models.Q(("ended_at__isnull", False), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="run_has_ended_exactly_when_final",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("request_id__isnull", False)),
                fields=("name", "request_id"),
                name="one_run_per_request",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("idempotency_key__isnull", False)),
                fields=("idempotency_key", "name"),
                name="one_run_per_idempotency_key",
            ),
        ),
        migrations.AddIndex(
            model_name="inboxmessage",
            index=models.Index(fields=["run", "number"], name="inbox_of_run"),
        ),
        migrations.AddIndex(
            model_name="historyentry",
            index=models.Index(fields=["run", "revision"], name="history_of_run"),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(fields=["run", "seq"], name="attempt_of_run"),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("status", "PENDING"), models.Q(("queue", ""), _negated=True)),
                fields=["queue", "-priority", "visible_at", "id"],
                name="attempt_to_claim",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("status__in", ["LEASED", "PENDING"])), fields=["due_at"], name="attempt_due"
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("status", "LEASED"), models.Q(("queue", ""), _negated=True)),
                fields=["name"],
                name="attempt_leased",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("rate_count__gt", 0)), fields=["name", "claimed_at"], name="attempt_by_claim"
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(fields=["name", "id"], name="attempt_by_name"),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("domain", ""), _negated=True), fields=["domain", "id"], name="attempt_by_domain"
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("status__in", ["CANCELED", "EXPIRED", "FAILED", "FAILED_FOR_GOOD"])),
                fields=["status", "id"],
                name="attempt_ended_badly",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("run__isnull", True), ("status", "PENDING")),
                fields=["queue", "scheduled_at", "id"],
                name="attempt_waiting_alone",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("run__isnull", True), ("status", "LEASED")),
                fields=["queue", "claimed_at", "id"],
                name="attempt_leased_alone",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("run__isnull", True), models.Q(("worker", ""), _negated=True)),
                fields=["queue", "worker", "-claimed_at", "-id"],
                name="attempt_alone_by_worker",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True), ("number__gt", 0)),
                fields=["id"],
                name="attempt_retrying",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("status__in", ["CANCELED", "EXPIRED", "FAILED", "FAILED_FOR_GOOD"])),
                fields=["name", "id"],
                name="attempt_bad_by_name",
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "status__in",
                        ["CANCELED", "COMPLETED", "EXPIRED", "FAILED", "FAILED_FOR_GOOD", "LEASED", "PENDING"],
                    )
                ),
                name="attempt_status_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("status__in", ["CANCELED", "COMPLETED", "EXPIRED", "FAILED", "FAILED_FOR_GOOD"]),
                        ("ended_at__isnull", False),
                    ),
                    models.Q(
                        ("status__in", ["LEASED", "PENDING"]), models.Q(("ended_at__isnull", False), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="attempt_has_ended_exactly_when_final",
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["LEASED", "PENDING"])),
                fields=("task",),
                name="one_open_attempt_a_task",
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(fields=("task", "number"), name="one_attempt_per_task_and_number"),
        ),
        migrations.AddIndex(
            model_name="runlabel",
            index=models.Index(fields=["name", "run"], name="run_label_by_name"),
        ),
        migrations.AddConstraint(
            model_name="runlabel",
            constraint=models.UniqueConstraint(fields=("run", "name"), name="one_label_of_a_name_per_run"),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(fields=["next_at"], name="alert_due"),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ("count", "share", "absence", "age"))), name="alert_kind_is_known"
            ),
        ),
        migrations.AddIndex(
            model_name="payloaduse",
            index=models.Index(fields=["run_id"], name="payload_of_run"),
        ),
        migrations.AddConstraint(
            model_name="payloaduse",
            constraint=models.UniqueConstraint(fields=("payload", "run_id"), name="one_use_per_payload_and_run"),
        ),
    ]
