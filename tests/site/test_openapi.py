"""The API's OpenAPI document."""

import re
import subprocess
import sys
from pathlib import Path

from django.contrib.staticfiles import finders

from conductor_app.site import api_urls as urls
from conductor_app.site.openapi.pages import build_document
from conductor_app.web.api.view import ConductorView

ROOT = Path(__file__).parents[2]


def views():
    found = (getattr(pattern.callback, "cls", None) for pattern in urls.urlpatterns)
    return [view for view in found if view and issubclass(view, ConductorView) and view.schema]


def test_every_published_operation_has_a_summary_and_a_response():
    methods = [(view, name) for view in views() for name in ("get", "post", "put", "delete") if hasattr(view, name)]

    undescribed = [
        f"{view.__name__}.{name}"
        for view, name in methods
        if not view.operation(name).summary or view.operation(name).reply is None
    ]

    assert len(methods) > 200
    assert undescribed == []


def test_every_published_operation_names_the_permission_that_it_requires():
    operations = build_document()["paths"]

    assert [
        (path, method)
        for path, methods in operations.items()
        for method, operation in methods.items()
        if not operation["x-permission"]
    ] == []
    assert operations["/api/tasks"]["post"]["x-permission"].startswith("EXECUTE on TASK_DEF")
    assert operations["/api/workflow/{workflow}"]["get"]["x-permission"] == "READ on WORKFLOW_DEF or READ on WORKFLOW"
    assert operations["/api/admin/config"]["get"]["x-permission"].startswith("any authenticated caller")
    assert operations["/api/token"]["post"]["x-permission"] == "none; the address requires no token"


def test_the_document_is_built_by_one_thread_while_others_wait():
    """In a process of its own, because the generator loads its extensions only once."""
    code = """
import sys, django
django.setup()
from concurrent.futures import ThreadPoolExecutor
from conductor_app.site.openapi.pages import build_document
sys.setswitchinterval(0.000001)
with ThreadPoolExecutor(8) as pool:
    assert len({id(document) for document in pool.map(lambda _: build_document(), range(8))}) == 1
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr[-2000:]


def test_the_document_is_valid_and_declares_its_errors(api):
    # Its module makes 39 parsers when it is imported: that is left to the process that runs this.
    from drf_spectacular.validation import validate_schema

    document = api.get("/openapi.json").json()

    validate_schema(document)
    for path in document["paths"].values():
        for operation in path.values():
            assert {"400", "404", "409"} <= operation["responses"].keys()
            assert operation["summary"]


def test_the_document_names_the_fields_of_requests(api):
    schemas = api.get("/openapi.json").json()["components"]["schemas"]

    assert {"workflowInstanceId", "taskId", "status", "outputData"} <= schemas["TaskResult"]["properties"].keys()
    assert {"tasks", "timeoutPolicy", "rateLimitConfig"} <= schemas["WorkflowDef"]["properties"].keys()
    assert schemas["WorkflowTask"]["properties"]["loopOver"]["items"] == {"$ref": "#/components/schemas/WorkflowTask"}


def test_the_page_loads_nothing_from_other_hosts(api):
    page = api.get("/docs").content.decode()

    *files, script = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(files) == 3
    for file in files:
        assert file.startswith("/static/")
        assert finders.find(file.removeprefix("/static/"))
    assert 'data-document="/api/openapi.json" data-cookie="csrftoken"' in page
    assert api.client.get(script)["Content-Type"].startswith("text/javascript")


def test_the_page_carries_no_script_or_style_of_its_own(api):
    page = api.get("/docs").content.decode()

    assert not re.search(r"<script>|<style|style=| on[a-z]+=", page)
