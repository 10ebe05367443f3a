# make demo    set up, and grade the embedded sample suite
# make test    set up everything that tests need, and run all of them
# make check   format, lint, strict types, import contracts, the size of the house, quick unit tests
# make lint    the same without the unit tests
# make docs    the documents as a site, in build/site

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
JUDGE := $(VENV)/bin/judge
PYTEST := $(VENV)/bin/python -m pytest
PYTEST_FLAGS ?=

# Several workers would otherwise each compile, in every run, what one can compile for all.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check unit lint docs setup setup-dev format lock clean

setup: $(VENV)/.ready
setup-dev: $(VENV)/.ready-dev

$(VENV)/.ready: requirements.lock pyproject.toml scripts/setup
	PYTHON=$(PYTHON) scripts/setup $(VENV) requirements.lock
	touch $@

$(VENV)/.ready-dev: requirements-dev.lock pyproject.toml scripts/setup
	PYTHON=$(PYTHON) scripts/setup $(VENV) requirements-dev.lock
	touch $@ $(VENV)/.ready

# Short limits, so that the samples that never end do not keep anybody waiting.
demo: setup
	$(JUDGE) sandbox build --no-office
	$(JUDGE) score dataset/sample/submissions.jsonl --dataset sample --out results/sample \
	    --cpu 4 --wall 8 --memory 512MiB
	$(JUDGE) score dataset/sample-typed/answers.jsonl --dataset sample-typed \
	    --out results/sample-typed
	$(JUDGE) score dataset/sample-rules/submissions.jsonl --dataset sample-rules \
	    --out results/sample-rules --cpu 4 --wall 8 --memory 512MiB
	$(JUDGE) score dataset/sample-checklist/submissions.jsonl --dataset sample-checklist \
	    --out results/sample-checklist --cpu 4 --wall 8 --memory 512MiB
	@if $(JUDGE) doctor | grep -q "^ *ok  *Desktop root for bubblewrap"; then set -x; \
	    $(JUDGE) desktop profit --steps dataset/sample-desktop/steps/profit.yaml \
	        --sandbox bubblewrap; \
	else echo "no desktop here, so no episode on one: $(JUDGE) sandbox build --desktop"; fi
	@echo "as an online judge, with a board of the sample submissions (docs/serve.md):"
	@echo "    make setup-dev && $(JUDGE) serve --demo"

test: setup-dev
	scripts/with-test-machine $(PYTEST) -n auto $(PYTEST_FLAGS)

# Beside each other: mypy keeps one processor busy.
check: setup-dev
	@$(MAKE) --no-print-directory -j 2 --output-sync=target lint unit

unit: setup-dev
	$(PYTEST) tests/unit -q -n auto --maxprocesses 3 \
	    -m "not (slow or data or bubblewrap or docker or office)"

lint: setup-dev
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/python scripts/count-house --check

docs: setup-dev
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	    -r requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

format: setup-dev
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

lock: setup
	$(VENV)/bin/pip install --quiet uv
	$(VENV)/bin/uv pip compile pyproject.toml --group build --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --quiet --output-file requirements.lock
	$(VENV)/bin/uv pip compile pyproject.toml --group dev --constraints requirements.lock \
	    --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --quiet --output-file requirements-dev.lock
	$(VENV)/bin/uv pip compile --group pyproject.toml:model --universal --python-version 3.11 \
	    --no-deps --generate-hashes --no-emit-index-url --quiet \
	    --output-file requirements-model.lock
	$(VENV)/bin/uv pip compile --group pyproject.toml:harbor --universal --python-version 3.12 \
	    --no-deps --generate-hashes --no-emit-index-url --quiet \
	    --output-file requirements-harbor.lock
	$(VENV)/bin/uv pip compile pyproject.toml --extra verifiers --group build --universal \
	    --python-version 3.11 --generate-hashes --no-emit-index-url --quiet \
	    --output-file requirements-verifiers.lock
	$(VENV)/bin/uv pip compile --group pyproject.toml:docs --constraints requirements-dev.lock \
	    --universal --python-version 3.11 --generate-hashes --no-emit-index-url --quiet \
	    --output-file requirements-docs.lock

clean:
	rm -rf $(VENV) .venv-verifiers results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
