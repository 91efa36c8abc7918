"""Two teams on one server, with the name of the team in every text that people and programs can fill."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from conductor_app.access import tokens
from conductor_app.access.commands.users import Subject, grant
from conductor_app.access.permissions import (
    ACCESSES,
    DOMAIN,
    EVENT_HANDLER,
    EXECUTE,
    FORM_TEMPLATE,
    INTEGRATION_PROVIDER,
    PROMPT,
    READ,
    SCHEDULE,
    SCHEMA,
    SECRET,
    TASK_DEF,
    VARIABLE,
    WEBHOOK,
    WORKFLOW_DEF,
)
from conductor_app.ai.commands.budgets import BudgetLimits, save_budget
from conductor_app.alerts.commands import create_target, save_alert, save_view
from conductor_app.bulk import commands as bulk
from conductor_app.core.ai import DAY, DEFINITION
from conductor_app.core.snapshot import NEVER
from conductor_app.failures.commands import group_failures
from conductor_app.processes import sweeps
from conductor_app.runs.commands import control
from conductor_app.runs.models import Message, Run
from tests.access.users import create_application
from tests.api_fixtures import Api
from tests.scenario import run_commit_hooks

TEAMS = ALPHA, BRAVO = "alpha", "bravo"
"""The teams. Each name is in every text of the team, and in no text of the other one."""
NAMED_KINDS = (
    *(WORKFLOW_DEF, TASK_DEF, SCHEDULE, EVENT_HANDLER, WEBHOOK, SCHEMA, FORM_TEMPLATE),
    *(PROMPT, INTEGRATION_PROVIDER, SECRET, VARIABLE),
)

ROLES = {"viewer": [READ], "operator": [READ, EXECUTE], "author": [*ACCESSES]}
"""The people of a team, with what they may do with all of its objects."""


@dataclass(frozen=True)
class Team:
    """What a team has: its runs by what happened to them, its people, and tokens of its programs.

    `agent_keys`: the tokens of the agents with the permissions of the people, by the role.
    """

    name: str
    runs: dict[str, str]
    viewer: User
    operator: User
    author: User
    worker_key: str
    agent_keys: dict[str, str]


def create_teams() -> dict[str, Team]:
    """Create the objects and runs of both teams, and the people that may see those of one team."""
    return {name: _create_team(name) for name in TEAMS}


def _create_team(team: str) -> Team:
    admin = Api()
    _create_definitions(admin, team)
    runs = _create_runs(admin, team)
    _create_objects(admin, team, runs)
    agents = {role: _create_agent(team, role, accesses) for role, accesses in ROLES.items()}
    people = {role: _create_person(team, role, accesses) for role, accesses in ROLES.items()}
    return Team(team, runs, **people, worker_key=_create_worker(team), agent_keys=agents)


def _create_definitions(admin: Api, team: str) -> None:
    tasks = [
        {"name": f"{team}_{name}", "description": f"{team} task", "ownerEmail": f"{team}@example.org", "retryCount": 0}
        for name in ("pack", "ship")
    ]
    _send(admin, "POST", "/metadata/taskdefs", tasks)
    texts = {
        "description": f"{team} workflow",
        "ownerEmail": f"{team}@example.org",
        "inputParameters": [f"{team}_input"],
        "inputTemplate": {f"{team}_input": f"{team} default"},
        "outputParameters": {f"{team}_out": f"{team} result"},
        "fairnessKey": f"{team} tenant",
    }
    tags = [{"key": "team", "value": team, "type": "METADATA"}]
    pack = {
        "name": f"{team}_pack",
        "taskReferenceName": f"{team}_pack_ref",
        "type": "SIMPLE",
        "description": f"{team} step",
        "inputParameters": {"note": f"{team} note"},
    }
    ask = {
        "name": f"{team}_ask",
        "taskReferenceName": f"{team}_ask_ref",
        "type": "HUMAN",
        "inputParameters": {
            "__humanTaskDefinition": {"displayName": f"{team} decides"},
            "question": f"{team} question",
        },
    }
    child = {
        "name": f"{team}_child",
        "taskReferenceName": f"{team}_child_ref",
        "type": "SUB_WORKFLOW",
        "subWorkflowParam": {"name": f"{team}_order"},
    }
    admin.define(pack, name=f"{team}_order", **texts)
    _send(admin, "PUT", f"/metadata/workflow/{team}_order/tags", tags)
    admin.define(ask, name=f"{team}_approval", **texts)
    admin.define(child, name=f"{team}_parent", **texts)


def _create_runs(admin: Api, team: str) -> dict[str, str]:
    """Start runs that fail, complete, wait for a worker, for a person and for a child, and one that is paused."""

    def start(name: str = "order") -> str:
        return admin.start(
            f"{team}_{name}",
            input={f"{team}_input": f"{team} given"},
            correlationId=f"{team}-correlation",
            createdBy=f"{team}-client",
        )

    def report(status: str, **fields: Any) -> str:
        run = start()
        [task] = admin.poll(f"{team}_pack", workerid=f"{team}-worker")
        admin.post(f"/tasks/{task['taskId']}/log", f"{team} log line")
        reply = admin.report(task, status, outputData={f"{team}_result": f"{team} output"}, **fields)
        assert reply.status_code == 200, reply.content
        return run

    runs = {
        "failed": report("FAILED", reasonForIncompletion=f"{team} broke"),
        "completed": report("COMPLETED"),
        "waiting": start(),
        "human": start("approval"),
        "parent": start("parent"),
        "paused": start(),
    }
    runs["child"] = Run.objects.get(parent_id=runs["parent"]).pk
    with run_commit_hooks():
        control.pause_run(runs["paused"], f"{team}-operator", f"{team} reason")
        control.add_labels(runs["failed"], [f"{team}-label"], f"{team}-operator", f"{team} reason")
    group_failures(1_000)
    return runs


def _create_objects(admin: Api, team: str, runs: dict[str, str]) -> None:
    """Create one object of each other kind, and what follows from them."""
    _send(admin, "POST", "/scheduler/schedules", {
        "name": f"{team}_schedule", "cronExpression": "0 0 0 * * ?", "description": f"{team} schedule",
        "startWorkflowRequest": {"name": f"{team}_order", "input": {"by": f"{team} schedule"}},
    })  # fmt: skip
    _send(admin, "POST", f"/scheduler/schedules/{team}_schedule/run", {})
    _send(admin, "POST", "/event", {
        "name": f"{team}_handler", "event": f"kafka:{team}_topic", "active": True,
        "actions": [{"action": "start_workflow", "start_workflow": {"name": f"{team}_order"}}],
    })  # fmt: skip
    _send(admin, "POST", "/metadata/webhook", {
        "name": f"{team}_webhook", "verifier": "HEADER_BASED", "headers": {"X-Key": f"{team} key"},
        "workflowsToStart": {f"{team}_order": 1},
    })  # fmt: skip
    schema = {"type": "object", "properties": {f"{team}_field": {"type": "string"}}}
    _send(admin, "POST", "/schema", [{"name": f"{team}_schema", "version": 1, "type": "JSON", "data": schema}])
    _send(admin, "POST", "/human/template", {
        "name": f"{team}_form", "version": 1, "jsonSchema": schema, "templateUI": {},
    })  # fmt: skip
    _send(admin, "PUT", f"/secrets/{team}_secret", f"{team} secret value")
    _send(admin, "PUT", f"/environment/{team}_variable", f"{team} variable value")
    _send(admin, "POST", f"/integrations/provider/{team}_models", {
        "type": "openai", "description": f"{team} models", "configuration": {"api_key": f"{team} api key"},
    })  # fmt: skip
    _send(admin, "POST", f"/integrations/provider/{team}_models/integration/{team}_model", {})
    _send(admin, "POST", f"/prompts/{team}_prompt?description={team}+prompt&autoIncrement=true", f"Greet {team}")
    save_budget(BudgetLimits(DEFINITION, f"{team}_order", DAY, max_tokens=10_000), f"{team}-owner", f"{team} reason")
    admin.poll(f"{team}_ship", workerid=f"{team}-idle")
    view = save_view(f"{team} view", {"definition": f"{team}_order"}, f"{team}-owner", is_shared=True, is_tile=True)
    target = create_target("email", f"{team} target", {"addresses": f"{team}@example.org"}, f"{team}-owner")
    save_alert(view, "count", 1_000_000, 60, 60, f"{team}-owner", targets=[target.pk])
    bulk.start(
        bulk.BulkRequest("pause", {"definition": f"{team}_none"}, f"{team} reason"),
        f"{team}-operator",
    )
    sweeps.sweep_once()
    Message.objects.create(
        to=runs["waiting"],
        subject="signal",
        facts={"text": f"{team} message"},
        sent_at=0,
        due_at=NEVER,
        tries=500,
        error=f"{team} error",
    )


def _send(admin: Api, method: str, path: str, body: Any) -> None:
    sent = body.encode() if isinstance(body, str) else body
    reply = admin.send(method, path, sent)
    assert reply.status_code in (200, 201, 204), (path, reply.status_code, reply.content)


def _create_person(team: str, role: str, accesses: list[str]) -> User:
    person = User.objects.create_user(f"{role}-of-{team}", is_staff=True)
    _grant_to(person.pk, team, role, accesses)
    return person


def _create_agent(team: str, role: str, accesses: list[str]) -> str:
    """Create an application with the permissions of a person. Returns a token."""
    application = create_application(f"agent-{role}-of-{team}")
    _grant_to(application.user_id, team, role, accesses)
    key, _ = tokens.new_key(application)
    return tokens.issue_token(key, application.name)


def _grant_to(user_id: int, team: str, role: str, accesses: list[str]) -> None:
    for kind in NAMED_KINDS:
        grant(Subject(user_id=user_id), kind, f"{team}_*", accesses, f"{role}-of-{team}", "root")


def _create_worker(team: str) -> str:
    """Create an application that polls and reports the tasks of a team. Returns the id of its key."""
    application = create_application(f"worker-of-{team}")
    for kind, name, accesses in (
        (TASK_DEF, f"{team}_*", [READ, EXECUTE]),
        (DOMAIN, f"{team}_*", [EXECUTE]),
        (WORKFLOW_DEF, f"{team}_*", [READ, EXECUTE]),
    ):
        grant(Subject(user_id=application.user_id), kind, name, accesses, application.name, "root")
    key, _ = tokens.new_key(application)
    return tokens.issue_token(key, application.name)
