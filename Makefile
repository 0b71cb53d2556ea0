# Two commands do everything on a fresh machine: `make bench` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: test lint types setup lock clean
.DEFAULT_GOAL := help

help: ## List the commands.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/' | column -t -s:

$(READY): requirements.txt pyproject.toml
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh tools/setup.sh

setup: $(READY) ## Make .venv with the pinned dependencies.

lint: $(READY) ## Style (ruff) and types (mypy --strict).
	$(BIN)/ruff check .
	$(BIN)/mypy

test: $(READY) lint ## Lint, types and tests.
	$(BIN)/python -m pytest -n auto

lock: $(READY) ## Pin requirements.in and all it needs into requirements.txt.
	$(BIN)/pip install --quiet --upgrade -r requirements.in
	(echo "# Pinned by 'make lock' from requirements.in; edit that file."; $(BIN)/pip freeze --exclude-editable) > requirements.txt

clean: ## Remove what the commands made (results/ stays).
	rm -rf $(VENV) .asv .cache .mypy_cache .ruff_cache .pytest_cache html build *.egg-info
