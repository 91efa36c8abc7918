"""The rules that hold for every address (api §1.1, §3.17, §8)."""

import pytest


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/png", "text/plain", "application/json"])
def test_the_accept_header_is_ignored(api, accept):
    assert api.client.get("/api/metadata/taskdefs", headers={"Accept": accept})["Content-Type"] == "application/json"
    assert api.client.get("/api/version", headers={"Accept": accept})["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_an_unknown_address_is_not_found_by_any_method(api, method):
    reply = api.send(method, "/nobody/knows")

    assert (reply.status_code, reply["Content-Type"], reply.json()["status"]) == (404, "application/json", 404)
    assert reply.json()["message"]


@pytest.mark.parametrize("path", ["/workflow/", "/tasks/", "/metadata/taskdefs/", "/tasks/poll/batch/pay/"])
def test_an_extra_slash_is_not_found_and_never_redirected(api, path):
    assert api.get(path).status_code == 404
    assert api.post(path, {}).status_code == 404


def test_the_bare_prefix_is_not_found_with_the_same_message(api):
    assert api.client.get("/api").json()["status"] == 404
    assert api.client.get("/api/").json()["status"] == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/tasks", "POST"),
        ("GET", "/tasks/update-v2", None),
        ("POST", "/tasks/poll/batch/pay", "GET"),
        ("PATCH", "/metadata/workflow", "GET, POST, PUT"),
        ("OPTIONS", "/workflow", "POST"),
        ("GET", "/metadata/workflow/order/1", "DELETE"),
    ],
)
def test_a_known_path_rejects_other_methods(api, method, path, allowed):
    reply = api.send(method, path, {})

    if allowed is None:
        assert reply.status_code == 405
        return
    assert (reply.status_code, reply.json()["status"]) == (405, 405)
    assert [each for each in reply["Allow"].split(", ") if each != "HEAD"] == allowed.split(", ")


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/xml", "multipart/form-data", "application/json"]
)
def test_the_content_type_of_a_body_is_ignored(api, content_type):
    reply = api.client.generic("POST", "/api/metadata/taskdefs", b'[{"name": "pay"}]', content_type)

    assert reply.status_code == 200


def test_a_body_on_a_get_is_ignored(api):
    reply = api.client.generic("GET", "/api/metadata/taskdefs", b"{", "application/json")

    assert reply.json() == []


def test_an_error_names_the_server_and_whether_to_retry(api):
    error = api.get("/workflow/nobody").json()

    assert error.keys() == {"status", "message", "instance", "retryable"}
    assert error["retryable"] is False


@pytest.mark.parametrize("given", ["true", "TRUE", "on", "Yes", "1"])
def test_yes_may_be_spelled_in_many_ways(api, given):
    api.post("/metadata/workflow", {"name": "a", "tasks": [{"name": "a", "taskReferenceName": "a"}]})

    reply = api.post(
        f"/metadata/workflow?overwrite={given}", {"name": "a", "tasks": [{"name": "a", "taskReferenceName": "b"}]}
    )

    assert reply.status_code == 200


def test_an_invalid_boolean_is_rejected(api):
    assert api.get("/workflow/x", includeTasks="perhaps").status_code == 400


def test_the_server_is_well(api):
    healthy = {"healthResults": [], "suppressedHealthResults": [], "healthy": True}

    assert api.client.get("/health").json() == healthy
    assert api.get("/health").json() == healthy


def test_the_version_is_no_number_to_a_client(api):
    assert not api.get("/version").content.decode().replace(".", "", 1).isdigit()


def test_the_configuration_does_not_reveal_the_environment(api, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", "s3cret")

    assert api.get("/admin/config").json().keys() == {"version", "apiAccess", "ownerEmailMandatory"}


def test_the_front_door_leads_to_the_operators_pages(api):
    assert api.client.get("/")["Location"] == "/admin/"


def test_monitoring_paths_of_the_original_are_served(api):
    assert api.client.get("/actuator/health").json() == {"status": "UP"}
    assert api.client.get("/actuator/info").json() == {}
    assert api.client.get("/api-docs").json()["openapi"].startswith("3.")
    assert api.client.get("/swagger-ui/index.html")["Location"] == "/api/docs"
