"""The recipes of CONTRIBUTING lead to what they promise, and its paths, targets and files exist."""

import re
from pathlib import Path

import pytest
from django.urls import path

from conductor_app import urls
from conductor_app.settings import conf, environment, table
from conductor_app.tasks import gates
from conductor_app.web.api.operations import PLAIN_TEXT, ApiOperation, PlainText
from conductor_app.web.api.permissions import ALLOW_ALL
from conductor_app.web.api.view import ConductorView
from qa.supply_chain.lock_files import EXTRAS, GROUPS
from tests.documentation.reference import configuration, step_types

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
CODE = re.compile(r"`([^`\n]+)`")
FOLDERS = ("conductor_app/", "tests/", "docs/", "templates/", "static/", "requirements/")
TARGET = re.compile(r"\bmake ([a-z][\w-]*)")


class Greeting(ConductorView):
    """GET /api/greeting: an endpoint that follows the recipe."""

    @ApiOperation("Greet", ALLOW_ALL, reply=PLAIN_TEXT)
    def get(self, request):
        return PlainText("hello")


class ForAdministrators(ConductorView):
    """GET /api/for-administrators: an endpoint whose operation declares no permission."""

    @ApiOperation("Keep a secret", reply=PLAIN_TEXT)
    def get(self, request):
        return PlainText("secret")


urlpatterns = [
    path("api/greeting", Greeting.as_view()),
    path("api/for-administrators", ForAdministrators.as_view()),
    *urls.urlpatterns,
]


def paths_named(text: str) -> set[str]:
    words = {word for code in CODE.findall(text) for word in code.split()}
    return {word.partition(":")[0] for word in words if word.startswith(FOLDERS)}


def test_each_path_that_is_named_exists():
    named = {name.replace("<capability>", "runs") for name in paths_named(CONTRIBUTING)}

    assert len(named) > 15
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_each_target_that_is_named_is_in_the_makefile(document):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for code in CODE.findall((ROOT / document).read_text()) for name in TARGET.findall(code)}

    assert named
    assert named - targets == set()


def test_each_public_target_is_described():
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    described = {name for code in CODE.findall(CONTRIBUTING) for name in TARGET.findall(code)}

    assert phony
    assert set(phony[1].split()) - described - {"clean", "demo", "demo-agent"} == set()


def test_each_lock_file_has_a_row():
    rows = set(re.findall(r"^\| `([\w-]+)\.lock` \|", CONTRIBUTING, re.MULTILINE))

    assert rows == {*EXTRAS, *GROUPS}


@pytest.mark.django_db
@pytest.mark.urls(__name__)
def test_a_view_with_operations_is_an_endpoint(client):
    assert client.get("/api/greeting").content == b"hello"


@pytest.mark.django_db
@pytest.mark.urls(__name__)
def test_an_endpoint_that_declares_no_permission_is_for_administrators(client, settings):
    settings.CONDUCTOR_API_ACCESS = "token"

    assert client.get("/api/for-administrators").status_code == 401
    assert ForAdministrators.operation("get").permission.describe() == "the role ADMIN"


def test_a_gate_is_part_of_the_claim_by_its_declaration(monkeypatch):
    gate = gates.Gate("holiday", lambda f: 0, "a.id <> 'holiday'", sentence=str, brief=str, open_sentence="")
    monkeypatch.setattr(gates, "GATES", (*gates.GATES, gate))

    assert "a.id <> 'holiday'" in gates.open_condition()
    assert not gate.lets_pass(gates.GateFacts(now=0, visible_at=0))


def test_a_row_of_the_table_is_a_setting_and_has_a_row_in_the_documentation(monkeypatch, settings):
    row = table._setting("GREETING", environment.text, "hello")
    monkeypatch.setitem(table.BY_SETTING, "salutation", row)
    monkeypatch.setitem(table.DEFAULTS, "salutation", row.default)
    settings.CONDUCTOR_SALUTATION = "welcome"

    assert conf.salutation == "welcome"
    assert conf.setting_errors() == []
    assert "| `CONDUCTOR_SALUTATION` | `GREETING` | `hello` | – |" in configuration.refresh_settings("")


def test_a_step_type_without_a_section_is_noticed(monkeypatch):
    monkeypatch.setitem(step_types.STEP_TYPES, "GREETING", step_types.STEP_TYPES["NOOP"])

    assert "GREETING" in step_types.documented_types()
    assert "## GREETING" not in (ROOT / "docs" / "reference" / "step-types.md").read_text()
