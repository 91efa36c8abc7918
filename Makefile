# One word for each thing: the environment is made and kept up to date on the way.

# The first Python from 3.11 to 3.13 that can make an environment, those first that are built with their optimizations, as
# distributions do and pyenv does not: without, the tests take a sixth longer. Name another with
# `make run PYTHON=/path/to/python`.
FITS := import ensurepip, sys, sysconfig, venv; \
	is_fast = sys.base_prefix == "/usr" or "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""); \
	(3, 11) <= sys.version_info[:2] <= (3, 13) and print(1 - is_fast, sys.executable)
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 /usr/bin/python3; do \
	$$python -c '$(FITS)' 2>/dev/null; done | sort -s -n -k 1,1 | head -n 1 | cut -d ' ' -f 2-)

BIN := .venv/bin/python
PIP := $(BIN) -m pip --disable-pip-version-check install --quiet --constraint requirements.lock
# A file at a time, in our order: what its tests share is made once. Two for each database, at the same time: many of
# them wait for others.
PYTEST := $(BIN) -m pytest -n 2 --dist loadfile --no-loadscope-reorder
PINS := pyproject.toml requirements.lock

# Set where images are built, it would make each of the tests' processes compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run demo test test-java bench screenshots messages lint clean

run: .venv/for-run
	@exec $(BIN) manage.py serve

demo: .venv/for-demo
	@exec $(BIN) manage.py demo

# Large pages for what glibc allocates: the tests take 4 % less.
test: export GLIBC_TUNABLES := glibc.malloc.hugetlb=1
test: .venv/for-test
	@failed=0; beside="$$(mktemp)"; trap 'rm -f "$$beside"' EXIT; \
	$(PYTEST) --ds=conductor_app.settings.testing_cluster --rows-only >"$$beside" 2>&1 & \
	echo "== on SQLite (PostgreSQL beside it)"; $(PYTEST) || failed=1; \
	wait $$! || failed=1; echo "== on PostgreSQL, what touches rows"; cat "$$beside"; \
	exit $$failed

# Needs Maven and a JDK from 17 on; `make test` runs it too where they are installed.
test-java: .venv/for-test
	@exec $(BIN) -m pytest tests/clients/test_java_sdk.py

bench: .venv/for-test
	@exec $(BIN) -m tests.bench

screenshots: .venv/for-test
	@exec $(BIN) -m tests.browser.screenshots

# Needs GNU gettext (xgettext, msgmerge, msgfmt); what it writes is committed, so nothing else does.
messages: .venv/for-test
	$(BIN) manage.py makemessages --all --add-location=file --no-wrap --ignore=tests --ignore=static --ignore=var --ignore=.venv
	$(BIN) manage.py compilemessages --ignore=.venv

lint: .venv/for-test
	$(BIN) -m ruff check .
	$(BIN) -m ruff format --check .
	$(BIN) -m djlint --check --quiet templates
	$(BIN) -m djlint --lint --quiet templates
	$(BIN) -m mypy conductor_app
	$(BIN) manage.py check
	$(BIN) manage.py makemigrations --check --dry-run

clean:
	rm -rf .venv var .pytest_cache .ruff_cache .mypy_cache .hypothesis

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 with its venv module is needed; none was found." >&2; exit 1; }
	@"$(PYTHON)" -m venv .venv

.venv/for-run: $(BIN) $(PINS)
	@echo "Installing what the server needs ..."
	@$(PIP) --editable . && touch $@

.venv/for-demo: $(BIN) $(PINS)
	@echo "Installing what the demo needs ..."
	@$(PIP) --editable ".[demo]" && touch $@ .venv/for-run

.venv/for-test: $(BIN) $(PINS)
	@echo "Installing what the tests need ..."
	@$(PIP) --editable ".[test]" && touch $@ .venv/for-run .venv/for-demo
