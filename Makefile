# Every target creates .venv with the pinned tools by itself: Python 3.11+, git and make are enough.

PYTHON ?= python3
# `make test PYTHON=python3.13` has an environment of its own, so that interpreters do not mix.
ifeq ($(origin PYTHON),command line)
VENV ?= .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
endif
VENV   ?= .venv
SEEDS  ?= 10000
RUNS   ?= 2000
SEED   ?=
KILLS  ?= 1000
ARGS   ?=
# Starting workers takes about two seconds: WORKERS=0 is faster for a few small tests.
WORKERS ?= 2

BIN  := $(VENV)/bin
PINS := requirements/dev.txt
CODE := $(wildcard src tests bench examples tools)

TOOLS   := $(VENV)/.tools-installed
PROJECT := $(VENV)/.project-installed

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

.PHONY: help install demo test check format lint types layering fix bench simulate kill-test docs clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 \2/p' $(MAKEFILE_LIST) \
		| awk '{ name = $$1 " " $$2; $$1 = $$2 = ""; printf "  %-14s%s\n", name, $$0 }'

install: $(PROJECT) ## create .venv with the pinned tools and this project in it

# Recreated when the pins change, so that it holds exactly the pins.
$(TOOLS): $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Interlock needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name a newer one: make install PYTHON=python3.12" >&2; \
		exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) --requirement $(PINS)
	@touch $@

# The build backend is among the pins: building downloads nothing.
$(PROJECT): $(TOOLS) pyproject.toml src/interlock/version.py
	$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

demo: install ## watch a run in the terminal
	@$(BIN)/python examples/demo.py $(ARGS)

check: format lint types layering test ## everything that CI runs

format: install
	$(BIN)/ruff format --check $(CODE)

lint: install
	$(BIN)/ruff check $(CODE)

types: install
	$(BIN)/mypy $(CODE)

layering: install ## check every import against the table of rooms
	$(BIN)/python -m tests.layering

test: install ## run the tests; ARGS="-k claim" selects some, PYTHON=python3.13 another interpreter
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

fix: install ## format, and fix what ruff can fix
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: install ## measure the figures of docs/benchmarks.md
	@$(BIN)/python -m bench $(ARGS)

simulate: install ## run SEEDS=10000 worlds and RUNS=2000 runs; SEED=n replays one of both
	@$(BIN)/python -m tests.simulation kernel --seeds $(SEEDS) $(if $(SEED),--seed $(SEED)) $(ARGS)
	@$(BIN)/python -m tests.simulation runtime --seeds $(RUNS) $(if $(SEED),--seed $(SEED)) $(ARGS)

kill-test: install ## kill a real coordinator KILLS=1000 times, restart and judge it
	@$(BIN)/python -m tests.faults.kill_driver --kills $(KILLS) $(if $(SEED),--seed $(SEED)) $(ARGS)

docs: install ## write again what is generated: docs/commands.md, docs/run.svg, the schemas
	$(BIN)/python -m tools.commands_reference
	$(BIN)/python -m tools.plan_schemas
	PYTHONPATH=examples $(BIN)/python -m tools.run_picture docs/run.svg

clean: ## remove virtual environments and caches
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
