# Every command of the project. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROTOS = $(shell find proto -name '*.proto' | LC_ALL=C sort)

.PHONY: help
help: ## Lists the commands.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: proto
proto: services/gen/.stamp ## Generates the Python code of the protos into services/gen.

# Type stubs come from mypy-protobuf where the development set is installed, and from protoc itself elsewhere.
# The new tree takes the old one's place at once, so that a running test never imports half of it.
services/gen/.stamp: $(PROTOS) Makefile
	@mkdir -p build services/gen; out=$$(mktemp -d build/gen.XXXXXX); trap 'rm -rf "$$out"' EXIT; \
	if [ -x $(BIN)/protoc-gen-mypy ]; then \
	  stubs="--plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc --mypy_out=quiet:$$out --mypy_grpc_out=quiet:$$out"; \
	else stubs="--pyi_out=$$out"; fi; \
	$(BIN)/python -m grpc_tools.protoc -I proto --python_out="$$out" --grpc_python_out="$$out" $$stubs $(PROTOS); \
	find "$$out/fivedraw" -type d -exec touch {}/__init__.py \;; \
	rm -rf services/gen/fivedraw; mv "$$out/fivedraw" services/gen/fivedraw
	@touch $@
