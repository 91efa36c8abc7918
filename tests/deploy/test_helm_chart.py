"""The chart has a value for every setting of a cluster, and renders valid resources of Kubernetes."""

import re
import subprocess
import textwrap
from typing import Any

import orjson
import pytest
import yaml

from conductor_app.settings import environment
from conductor_app.system_tasks.registry import workers
from tests.deploy import chart_schema
from tests.deploy.chart_schema import CHART, SECRETS, SET_BY_THE_CHART, load_schema, settings_of_a_cluster
from tests.deploy.settings_in_code import FOLDER, ROOT, read_settings
from tests.deploy.tools import needs, run_tool

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
REQUIRED = {
    "secrets.SECRET_KEY": "k" * 50,
    "secrets.DATABASE_URL": "postgresql://u:p@db/conductor",
    "secrets.REDIS_URL": "redis://cache/0",
    "settings.ALLOWED_HOSTS": "conductor.example.org",
}
EVERYTHING = {
    "events.enabled": "true",
    "groups.enabled": "true",
    "autoscaling.worker.enabled": "true",
    "autoscaling.web.enabled": "true",
    "ingress.enabled": "true",
    "ingress.hosts[0]": "conductor.example.org",
    "serviceMonitor.enabled": "true",
}
VERSIONS = ("1.27.0", "1.37.0")
needs_helm = needs("helm")


def render(values: dict[str, str], version: str = VERSIONS[-1]) -> subprocess.CompletedProcess:
    words = [word for name, value in values.items() for word in ("--set", f"{name}={value}".replace(",", r"\,"))]
    return run_tool("helm", "template", "conductor", CHART, "--kube-version", version, "--namespace", "flows", *words)


def resources(values: dict[str, str]) -> dict[tuple[str, str], dict[str, Any]]:
    rendered = render(values)
    assert rendered.returncode == 0, rendered.stderr
    found = list(filter(None, yaml.safe_load_all(rendered.stdout)))
    return {(each["kind"], each["metadata"]["name"].removeprefix("conductor-conductor-app")): each for each in found}


def pod_of(resource: dict[str, Any]) -> dict[str, Any]:
    return resource["spec"]["template"]["spec"]


def test_the_settings_read_only_variables_of_the_table():
    """The table is the base of the other tests."""
    mentioned = set()
    for path in FOLDER.glob("*.py"):
        if path.stem not in ("environment", "services", "table", "testing", "testing_cluster", "linting"):
            mentioned |= set(re.findall(r'(?:environment|table)\.\w+\(\s*"([A-Z][A-Z0-9_]+)"', path.read_text()))

    assert mentioned <= read_settings()
    assert len(mentioned) > 20


def test_the_chart_has_a_value_for_every_setting_of_a_cluster():
    expected = settings_of_a_cluster()

    assert set(VALUES["secrets"]) == SECRETS
    assert set(VALUES["settings"]) | set(VALUES["secrets"]) == set(expected)
    assert set(VALUES["settings"].values()) == set(VALUES["secrets"].values()) == {None}
    assert read_settings() >= SET_BY_THE_CHART


def test_the_schema_of_the_chart_has_the_types_and_bounds_of_the_settings():
    """After a change of a setting, `python -m tests.deploy.chart_schema` writes the schema again."""
    properties = load_schema()["properties"]

    assert {key: properties[key] for key in ("settings", "secrets")} == chart_schema.schemas_of_settings()


def test_the_comments_of_the_values_name_the_defaults_of_the_settings():
    text = (CHART / "values.yaml").read_text()
    found = {name: default for default, name in re.findall(r"; default: (.+?)\.(?: [A-Z][^\n]*)?\n  (\w+): null", text)}
    expected = {
        name: str(row.default).lower() if row.reader is environment.boolean else str(row.default)
        for name, row in settings_of_a_cluster().items()
        if name not in SECRETS and isinstance(row.default, str | int) and row.default != ""
    }

    assert found == expected


def test_the_schema_accepts_the_values_of_the_chart():
    import jsonschema_rs

    validator = jsonschema_rs.validator_for(load_schema())

    assert [str(error) for error in validator.iter_errors(VALUES)] == []
    wrong = VALUES | {"settings": VALUES["settings"] | {"WEB_WORKERS": 0, "LOG_LEVEL": "LOUD", "NOPE": 1}}
    assert len(list(validator.iter_errors(wrong))) == 3


def test_the_workers_are_scaled_by_a_metric_and_queues_of_the_server():
    scaling = VALUES["autoscaling"]["worker"]
    exported = (ROOT / "conductor_app" / "monitoring" / "api.py").read_text()
    adapter = yaml.safe_load((CHART.parent / "prometheus-adapter-values.yaml").read_text())

    assert f'GaugeMetricFamily("{scaling["metric"]}"' in exported
    assert 'labels=["queue"]' in exported
    assert adapter["rules"]["external"][0]["seriesQuery"] == scaling["metric"]
    assert sorted(scaling["queues"]) == sorted(workers())


@needs_helm
def test_helm_finds_no_fault():
    words = [word for name, value in (REQUIRED | EVERYTHING).items() for word in ("--set", f"{name}={value}")]

    done = run_tool("helm", "lint", CHART, "--strict", "--kube-version", VERSIONS[0], *words)

    assert done.returncode == 0, done.stdout + done.stderr


@needs_helm
@needs("kubernetes-validate")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", [REQUIRED, REQUIRED | EVERYTHING], ids=["defaults", "everything"])
def test_the_resources_follow_the_schemas_of_kubernetes(values, version, tmp_path):
    rendered = render(values, version)
    file = tmp_path / "resources.yaml"
    file.write_text(rendered.stdout)

    options = ("--strict", "--no-warn", "--kubernetes-version", version.rpartition(".")[0])
    done = run_tool("kubernetes-validate", *options, file)

    assert rendered.returncode == 0, rendered.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert rendered.stdout.count("\nkind: ") == (done.stdout + done.stderr).count(" passed ") + rendered.stdout.count(
        "kind: ServiceMonitor"
    )


@needs_helm
def test_settings_reach_the_containers_as_the_server_reads_them():
    rendered = resources(
        REQUIRED
        | {"settings.HTTPS": "false", "settings.MAX_HISTORY_ENTRIES": "20000000", "settings.LOG_LEVEL": "WARNING"}
        | {"settings.OTEL_SERVICE_NAME": "flows", "workflowEnv.REGION": "eu", "secrets.CONDUCTOR_SECRET_PIN": "s3cret"}
    )

    assert rendered["ConfigMap", ""]["data"] == {
        "ALLOWED_HOSTS": "conductor.example.org",
        "CONDUCTOR_ENV_REGION": "eu",
        "HOST": "0.0.0.0",
        "HTTPS": "false",
        "LOG_LEVEL": "WARNING",
        "MAX_HISTORY_ENTRIES": "20000000",
        "OTEL_SERVICE_NAME": "flows",
        "PORT": "8000",
    }
    assert rendered["Secret", ""]["stringData"] == {
        "CONDUCTOR_SECRET_PIN": "s3cret",
        **{name.partition(".")[2]: value for name, value in REQUIRED.items() if name.startswith("secrets.")},
    }


@needs_helm
def test_no_secret_is_outside_of_the_secrets():
    rendered = resources(REQUIRED | EVERYTHING)

    others = {key: each for key, each in rendered.items() if key[0] != "Secret"}

    assert "u:p@db" not in orjson.dumps(list(others.values())).decode()


@needs_helm
def test_an_existing_secret_replaces_the_secrets():
    rendered = resources({"settings.ALLOWED_HOSTS": "a.example.org", "existingSecret": "mine"})

    assert not [key for key in rendered if key[0] == "Secret"]
    for kind, name in (("Deployment", "-web"), ("Job", "-migrate")):
        [container] = pod_of(rendered[kind, name])["containers"]
        assert container["envFrom"][1] == {"secretRef": {"name": "mine"}}


@needs_helm
def test_the_migration_precedes_the_pods_with_the_settings_that_it_needs():
    """Hooks run before other resources exist, so the hook has a copy of the settings."""
    rendered = resources(REQUIRED)
    job = rendered["Job", "-migrate"]
    [container] = pod_of(job)["containers"]

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert container["args"] == ["migrate"]
    names = [next(iter(source.values()))["name"] for source in container["envFrom"]]
    assert names == ["conductor-conductor-app-migrate"] * 2
    for kind in ("ConfigMap", "Secret"):
        copy = rendered[kind, "-migrate"]
        assert int(copy["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0
        assert {**copy, "metadata": 0} == {**rendered[kind, ""], "metadata": 0}
    assert "serviceAccountName" not in pod_of(job)


@needs_helm
def test_every_container_is_confined():
    rendered = resources(REQUIRED | EVERYTHING)
    pods = {key: pod_of(each) for key, each in rendered.items() if key[0] in ("Deployment", "Job")}

    assert [name for _, name in pods] == ["-beat", "-events", "-groups", "-web", "-worker", "-migrate"]
    for pod in pods.values():
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", "/var/lib/conductor-app"}


@needs_helm
def test_the_web_processes_have_probes_and_a_disruption_budget():
    rendered = resources(REQUIRED | {"web.port": "9000"})
    [web] = pod_of(rendered["Deployment", "-web"])["containers"]

    assert web["livenessProbe"]["httpGet"] == {"path": "/health/live", "port": "http"}
    assert web["readinessProbe"]["httpGet"] == {"path": "/health/ready", "port": "http"}
    assert web["ports"] == [{"name": "http", "containerPort": 9000}]
    assert rendered["ConfigMap", ""]["data"]["PORT"] == "9000"
    budget = rendered["PodDisruptionBudget", "-web"]["spec"]["selector"]["matchLabels"]
    assert budget.items() <= rendered["Deployment", "-web"]["spec"]["template"]["metadata"]["labels"].items()


@needs_helm
def test_a_scaled_deployment_has_no_fixed_number_of_pods():
    rendered = resources(REQUIRED | EVERYTHING)
    scaler = rendered["HorizontalPodAutoscaler", "-worker"]["spec"]

    assert scaler["metrics"][0]["external"]["metric"]["name"] == "conductor_queue_depth"
    assert scaler["scaleTargetRef"]["name"] == rendered["Deployment", "-worker"]["metadata"]["name"]
    assert "replicas" not in rendered["Deployment", "-worker"]["spec"]
    assert rendered["Deployment", "-beat"]["spec"]["replicas"] == 2


@needs_helm
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "settings.ALLOWED_HOSTS is not set."),
        ({"settings.ALLOWED_HOSTS": "a"}, "secrets.SECRET_KEY is not set. Set it, or name a Secret that has it"),
        (REQUIRED | {"settings.NOPE": "1"}, "additional properties 'NOPE' not allowed"),
        (REQUIRED | {"settings.WEB_WORKERS": "0"}, "/settings/WEB_WORKERS': minimum: got 0, want 1"),
        (REQUIRED | {"ingress.enabled": "true"}, "ingress.hosts needs at least one host."),
    ],
)
def test_a_wrong_value_is_refused_by_name(values, words):
    refused = render(values)

    assert refused.returncode == 1
    assert words in refused.stderr


@needs_helm
def test_the_values_of_a_team_are_accepted(tmp_path):
    page = (ROOT / "docs" / "how-to" / "several-teams.md").read_text()
    [values] = re.findall(r"```yaml\n(.+?)```", page, re.DOTALL)
    (tmp_path / "shop.yaml").write_text(values)

    options = ("--kube-version", VERSIONS[-1], "--namespace", "shop", "--values", tmp_path / "shop.yaml")
    done = run_tool("helm", "template", "conductor", CHART, *options)

    assert done.returncode == 0, done.stderr
    assert 'host: "shop.example.org"' in done.stdout


@needs_helm
def test_a_path_prefix_reaches_the_ingress_and_the_monitor():
    rendered = resources(REQUIRED | EVERYTHING | {"settings.SCRIPT_NAME": "/shop"})
    [rule] = rendered["Ingress", ""]["spec"]["rules"]

    assert rule["http"]["paths"][0]["path"] == "/shop"
    assert rendered["ServiceMonitor", ""]["spec"]["endpoints"][0]["path"] == "/shop/metrics"
    assert resources(REQUIRED | EVERYTHING)["Ingress", ""]["spec"]["rules"][0]["http"]["paths"][0]["path"] == "/"


@needs_helm
def test_the_values_of_the_documentation_are_accepted(tmp_path):
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    examples = [textwrap.dedent(found) for found in re.findall(r"```yaml\n(.+?) *```", page, re.DOTALL)]
    files = []
    for number, example in enumerate(examples):
        file = tmp_path / f"{number}.yaml"
        file.write_text(example)
        files += ["--values", file]

    done = run_tool("helm", "template", "conductor", CHART, "--kube-version", VERSIONS[-1], *files)

    assert len(examples) == 2 and done.returncode == 0, done.stderr
    assert "conductor-conductor-app-web" in page and "name: conductor-conductor-app-web" in done.stdout
