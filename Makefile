# Every command of the project; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests run in this many processes, each with servers of its own. Files are given out in order, so that those with few but
# long tests do not come last; half of `test-full` is waiting for alerts, so it takes one more.
WORKERS ?= 2
SPREAD := --dist loadfile --no-loadscope-reorder
# More words for `fivedraw up`, for example `make run UP="--tables 6 --speed fast"`.
UP ?=
# Where the embedded house keeps its files.
DATA ?= .data
# More words for pytest, for example `make test PYTEST="-k wallet -x"`.
PYTEST ?=

PROTOS = $(shell find proto -name '*.proto' | LC_ALL=C sort)
# The locks are complete and hashed, so pip has nothing to resolve and takes nothing that is not in them. Byte code is
# compiled by the first import of what is really used.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile
RUN_SET := $(VENV)/.run-set
DEV_SET := $(VENV)/.dev-set
CODE := services/gen/.stamp

.PHONY: help
help: ## Lists the commands.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(RUN_SET) $(CODE) ## Makes the virtual environment and the generated code; other commands do it when needed.

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fivedraw needs Python 3.11 or later")'
	@echo "making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(RUN_SET): requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing what the casino needs"
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-build-isolation -e .
	@touch $@

$(DEV_SET): requirements-dev.lock $(RUN_SET)
	@echo "installing what tests and checks need"
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

# A make of its own for the code: what it depends on may have just been installed.
.PHONY: dev
dev: $(DEV_SET)
	@$(MAKE) --no-print-directory proto

.PHONY: proto
proto: $(CODE) ## Generates the Python code of the protos into services/gen.

# Type stubs come from mypy-protobuf where the development set is installed, and from protoc itself elsewhere. The new
# tree is made aside, so that a fault in a proto leaves the old one in place.
$(CODE): $(PROTOS) $(wildcard $(DEV_SET)) | $(RUN_SET)
	@mkdir -p build services/gen; out=$$(mktemp -d build/gen.XXXXXX); trap 'rm -rf "$$out"' EXIT; \
	if [ -x $(BIN)/protoc-gen-mypy ]; then \
	  stubs="--plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy --mypy_out=quiet:$$out"; \
	  stubs="$$stubs --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc --mypy_grpc_out=quiet:$$out"; \
	else stubs="--pyi_out=$$out"; fi; \
	$(BIN)/python -m grpc_tools.protoc -I proto --python_out="$$out" --grpc_python_out="$$out" $$stubs $(PROTOS); \
	find "$$out/fivedraw" -type d -exec touch {}/__init__.py \;; \
	rm -rf services/gen/fivedraw; mv "$$out/fivedraw" services/gen/fivedraw
	@touch $@

.PHONY: run
run: setup ## Starts the casino with bots at its tables; Ctrl-C ends it in order, and the next run goes on.
	@exec $(BIN)/fivedraw up --data $(DATA) $(UP)

# `fivedraw up` is the parent of its process manager, and ends the house in order when it is interrupted.
.PHONY: down
down: ## Ends in order a casino that runs in another terminal (DATA=folder, default .data).
	@pid=$$(cat $(DATA)/run/supervisord.pid 2>/dev/null) && up=$$(ps -o ppid= -p "$$pid" 2>/dev/null) \
	  || { echo "no casino runs on $(DATA)"; exit 0; }; \
	kill -INT $$up; while kill -0 $$up 2>/dev/null; do sleep 0.2; done; echo "the casino on $(DATA) has ended"

.PHONY: fmt
fmt: dev ## Formats the Python code.
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

.PHONY: lint
lint: dev ## Checks style, types, the walls between services, protos, Dockerfile, compose file.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint
	@$(MAKE) --no-print-directory breaking
	$(BIN)/hadolint deploy/Dockerfile
	$(BIN)/docker-compose --env-file deploy/example.env config --quiet

# The contract is measured against the last release; before the first one it may still move.
.PHONY: breaking
breaking: dev
	@release=$$(git describe --tags --match 'v*' --abbrev=0 2>/dev/null || true); \
	if [ -n "$$release" ]; then $(BIN)/buf breaking --against ".git#tag=$$release"; \
	else echo "buf breaking: no release to compare with yet"; fi

.PHONY: test
test: dev ## Runs the quick suite on real Redis and PostgreSQL (minutes).
	@$(BIN)/python -m pytest -m "not long and not full and not alone" -n $(WORKERS) $(SPREAD) $(PYTEST)

.PHONY: test-full
test-full: dev deploy-tools ## Runs what needs Debian packages (and installs those), or the machine for itself.
	@$(BIN)/python -m pytest -m full -n $$(($(WORKERS) + 1)) $(SPREAD) $(PYTEST)
	@$(BIN)/python -m pytest -m alone $(PYTEST)

.PHONY: test-long
test-long: dev long-tools ## Runs the long statistical and soak tests (and installs dieharder, a Debian package).
	@$(BIN)/python -m pytest -m long --timeout 3600 $(PYTEST)

.PHONY: long-tools
long-tools:
	@command -v dieharder >/dev/null || { \
	  sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); $$sudo apt-get update -qq; \
	  $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends dieharder >/dev/null; }

.PHONY: test-dashboards
test-dashboards: dev deploy-tools ## Tests alerts, dashboards and the console in a real Prometheus and a real browser.
	@$(BIN)/python -m pytest -m full tests/integration/deploy tests/full $(PYTEST)

.PHONY: deploy-tools
deploy-tools: build/axe/.stamp
	@command -v promtool >/dev/null && command -v amtool >/dev/null && command -v chromium >/dev/null || { \
	  sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$sudo apt-get update -qq; \
	  $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
	    prometheus prometheus-alertmanager chromium fonts-dejavu-core >/dev/null; }

# The checks of accessibility, for the browser's tests alone.
build/axe/.stamp:
	@mkdir -p build/axe
	@command -v npm >/dev/null || { \
	  sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); $$sudo apt-get update -qq; \
	  $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends nodejs npm >/dev/null; }
	@npm install --silent --no-audit --no-fund --prefix build/axe axe-core@4.10.3
	@touch $@

.PHONY: bench
bench: dev ## Measures the hot paths; writes build/bench.json.
	@$(BIN)/python -m bench

.PHONY: fuzz-rules
fuzz-rules: dev ## Plays 100,000 random hands over all rulebooks.
	@$(BIN)/python -m tests.property.rules.fuzz --hands 100000

.PHONY: soak-wallet
soak-wallet: dev ## Runs 1,000,000 random operations with faults on each database's ledger.
	@$(BIN)/python -m tests.load.soak_wallet --operations 1000000 --database sqlite
	@$(BIN)/python -m tests.load.soak_wallet --operations 1000000 --database postgresql

.PHONY: soak-history
soak-history: dev ## Plays 10,000 hands while all that writes their histories is killed again and again.
	@$(BIN)/python -m tests.load.history.soak --hands 10000

# uv resolves for all platforms at once, which pip cannot; it lives in an environment of its own.
.PHONY: lock
lock: ## Writes the lock files anew from pyproject.toml, keeping versions that still fit (LOCK="--upgrade" for newer).
	@$(PYTHON) -m venv build/uv && build/uv/bin/pip install --quiet --disable-pip-version-check uv
	@compile="build/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes"; \
	compile="$$compile --no-emit-index-url --no-header pyproject.toml"; \
	$$compile --all-extras $(LOCK) -o requirements-dev.lock; \
	$$compile --extra embedded --extra build -c requirements-dev.lock -o requirements.lock
