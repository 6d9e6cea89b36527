# Slackwater. `make help` lists the targets; each does its own set-up.
SHELL := /bin/sh
.DEFAULT_GOAL := help
ARGS ?=
# The first interpreter on the path that runs and is new enough (a name on the path may be a shim that does not run).
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
BIN := .venv/bin

.PHONY: help setup night test check fast format pins

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv from the pinned set (all others call this)
	@test -n "$(PYTHON)" || { echo "setup: no Python 3.11 or newer on the path; install one, or run make PYTHON=/path/to/python3" >&2; exit 2; }
	@$(PYTHON) tools/bootstrap.py

night: setup ## run a whole night; options: make night ARGS="--minutes 2 --seed 7 --report night.json"
	@exec $(BIN)/nightshift night $(ARGS)

# Twice as many processes as two cores: most tests wait, for workers that start and for leases that lapse. Their
# order is that of tests/spreading.py, and what they start finds its modules compiled.
test: setup ## all tests; options: make test ARGS="-k schedule"
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 4 --dist loadscope --no-loadscope-reorder $(ARGS)

check: setup ## format, lint, types, import rules, unit and property tests
	@$(MAKE) --no-print-directory -j 2 --output-sync=target check-types check-rest

.PHONY: check-types check-rest
check-types:
	@$(BIN)/mypy

check-rest:
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/deptry src && cd nightshift && ../$(BIN)/deptry src
	@$(BIN)/python -m pytest -q tests/unit tests/property

format: setup ## bring the code into shape
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

pins: ## resolve the pinned set anew (needs uv on the path)
	uv pip compile pyproject.toml nightshift/pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --no-emit-package slackwater --no-emit-package nightshift \
	  -o requirements/requirements.txt
