"""Permissions on integrations, their models and prompts: of the API, and of data that names them."""

import pytest

from conductor_app.access.models import Grant
from conductor_app.runs.models import Attempt, Run
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import step_of

OPENAI = {"type": "openai", "category": "AI_MODEL", "configuration": {"api_key": "sk-4711"}}
TRIAL = {"prompt": "x", "llmProvider": "main", "model": "gpt-4o"}


@pytest.fixture
def team(with_logins, clock):
    """Return the application of a team, and its client."""
    made = create_application("team")
    return made, api_client_of(made)


def test_callers_see_and_change_only_what_they_are_granted(team):
    made, client = team
    admin = api_client_of(create_application("root", "ADMIN"))
    admin.post("/integrations/provider/main", OPENAI)
    admin.post("/integrations/provider/main/integration/gpt-4o", {})

    assert client.get("/integrations").json() == [] == client.get("/integrations/all").json()
    for call in (
        client.get("/integrations/provider/main"),
        client.post("/integrations/provider/main", OPENAI),
        client.post("/integrations/provider/new", OPENAI),
        client.delete("/integrations/provider/main"),
        client.get("/integrations/provider/main/integration/gpt-4o"),
        client.get("/integrations/provider/gpt-4o/integration/main"),
        client.post("/integrations/provider/main/integration/new", {}),
        client.delete("/integrations/provider/gpt-4o/integration/main"),
        client.post("/integrations/provider/main/integration/gpt-4o/metrics", 1),
        client.post("/prompts/test", TRIAL),
    ):
        assert call.status_code == 403

    grant_access(made, "INTEGRATION", "main:gpt-4o", "READ")
    assert client.get("/integrations/provider/gpt-4o/integration/main").status_code == 200
    grant_access(made, "INTEGRATION_PROVIDER", "main", "READ", "UPDATE")
    assert client.get("/integrations").json()[0]["name"] == "main"
    assert client.post("/integrations/provider/main/integration/new", {}).status_code == 200
    assert client.delete("/integrations/provider/main").status_code == 403


def test_the_creator_owns_a_new_integration_and_a_later_one_of_the_name_inherits_nothing(team):
    made, client = team
    grant_access(made, "INTEGRATION_PROVIDER", "team-*", "CREATE")

    assert client.post("/integrations/provider/team-main", OPENAI).status_code == 200
    assert client.post("/integrations/provider/team-main/integration/x", {}).status_code == 200
    grant_access(made, "INTEGRATION", "team-main:x", "READ")
    assert client.delete("/integrations/provider/team-main").status_code == 200

    assert not Grant.objects.filter(target_id__in=["team-main", "team-main:x"]).exists()


def test_callers_need_permission_to_read_save_and_try_prompts(with_logins, clock):
    made = create_application("team")
    admin, client = api_client_of(create_application("root", "ADMIN")), api_client_of(made)
    admin.post("/prompts/theirs", b"x")

    assert client.get("/prompts").json() == []
    for call in (
        client.get("/prompts/theirs"),
        client.post("/prompts/mine", b"x"),
        client.post("/prompts/", [{"name": "mine", "template": "x"}]),
        client.put("/prompts/theirs", b"x"),
        client.delete("/prompts/theirs"),
        client.delete("/prompts/theirs/versions/1"),
        client.put("/prompts/theirs/tags", []),
        client.post("/prompts/test", TRIAL),
    ):
        assert call.status_code == 403
    grant_access(made, "PROMPT", "mine*", "CREATE")
    assert client.post("/prompts/mine", b"x").status_code == 200
    assert client.delete("/prompts/mine").status_code == 200


def chat(**inputs):
    return step_of("LLM_CHAT_COMPLETE", "chat", inputParameters={"llmProvider": "main", "model": "m", **inputs})


def test_an_integration_that_data_names_requires_the_permission_of_the_starter(with_logins, clock):
    admin, starter = api_client_of(create_application("root", "ADMIN")), create_application("starter")
    step = chat(llmProvider="${workflow.input.provider}")
    admin.post("/metadata/workflow", {"name": "team-flow", "version": 1, "schemaVersion": 2, "tasks": [step]})
    grant_access(starter, "WORKFLOW_DEF", "team-flow", "EXECUTE")

    def reasons_of_a_new_run():
        run = api_client_of(starter).post("/workflow/team-flow", {"provider": "main"}).content.decode()
        return (
            f"{Run.objects.get(pk=run).reason} {list(Attempt.objects.filter(run=run).values_list('reason', flat=True))}"
        )

    assert "starter lacks the permission EXECUTE on INTEGRATION" in reasons_of_a_new_run()
    grant_access(starter, "INTEGRATION_PROVIDER", "main", "EXECUTE")
    assert "lacks the permission" not in reasons_of_a_new_run()
