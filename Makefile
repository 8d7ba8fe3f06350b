# Every target works on a machine that has only Python (with venv and pip) and make.
PYTHON ?= python3
PIP_ARGS ?=

BIN := .venv/bin
PIP_INSTALL := $(BIN)/pip install $(PIP_ARGS) -c constraints.txt
PINS := pyproject.toml constraints.txt
BENCHMARKS := training_step predict_explain head_kernels scaling explainers

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' Makefile
	@echo '  PYTHON=python3.12 chooses the Python; PIP_ARGS="..." is passed to pip (see CONTRIBUTING.md)'

setup: .venv/.installed-dev ## create .venv with the pinned development environment

demo: .venv/.installed-base ## install the package, then run the demonstration
	$(BIN)/lexical-sae demo

test: check ## lint, types, import order, then the fast tests
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/pytest -n 2 -m "not slow and not browser and not gpu and not network"

check: .venv/.installed-dev ## lint, types and import order only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.installed-dev ## run the benchmarks that suit a CPU, at small shapes, and refresh docs/results
	$(BIN)/python benchmarks/families.py --output docs/results/foundation.md
	for name in $(BENCHMARKS); do \
	  $(BIN)/python benchmarks/$$name.py --device cpu --output docs/results/performance.md || exit 1; done

clean: ## remove .venv, results, caches and builds
	rm -rf .venv results build dist *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pip is the last thing venv writes, so a half-made environment is made again.
.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 10) <= sys.version_info[:2] <= (3, 13) else "Python %d.%d is not supported: choose 3.10 to 3.13, for example make PYTHON=python3.12 setup" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv

# torch goes first and alone: its build is chosen by PIP_ARGS before anything else can ask for it.
.venv/.installed-base: $(PINS) | .venv/bin/pip
	$(PIP_INSTALL) torch==2.13.0
	$(PIP_INSTALL) -e .
	@touch $@

.venv/.installed-dev: .venv/.installed-base
	$(PIP_INSTALL) -e ".[dev,report,explainers]"
	@touch $@
