# Lapwing: `make demo` and `make test` each work as the first command ever typed in a clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-long check check-quick types figures prose editor bench bench-history docs dist lock lock-extras clean help

# A hundred of the tests start processes: these must not compile everything again, whatever the environment says.
# Tests wait for half of their time, for each other too (`tests/support/alone.py`): two processes fill a core.
PROCESSES = $$((($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2))
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal -q --ignore=tests/spark
# Those of Spark share one JVM, in one process, beside all others: they wait for it most of the time. Without Java they
# are skipped.
SPARK = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q tests/spark
HAS_JAVA = command -v java > /dev/null
# In a new clone pytest rewrites each test file once, and keeps that: one process first, so that not each of several does.
# Meanwhile is installed what is missing.
FOUND = $(subst -n $(PROCESSES) --dist worksteal,-p no:xdist --collect-only,$(PYTEST)) > /dev/null 2>&1

# `lapwing` is what the distribution was called before: its leftovers are removed.
INSTALL = $(PIP) uninstall --yes --quiet lapwing && $(PIP) install --no-build-isolation --no-deps -e .

demo: $(VENV)/run.stamp        ## answer real questions on the shipped data set
	@$(BIN)/lapwing demo --folder demo

test: $(VENV)/dev.stamp        ## run the tests, in parallel: minutes; those of one room: make test ROOM=query
ifdef ROOM
	@test -d tests/$(ROOM) || { echo "There is no tests/$(ROOM); the rooms are:" $(filter-out fixtures support,$(notdir $(patsubst %/,%,$(wildcard tests/*/)))); exit 2; }
	@$(if $(filter spark,$(ROOM)),$(MAKE) --no-print-directory $(VENV)/spark.stamp && $(SPARK),$(PYTEST) tests/$(ROOM))
else
	@$(FOUND) & requirements/debian.sh && { ! $(HAS_JAVA) || $(MAKE) --no-print-directory $(VENV)/spark.stamp; }; made=$$?; wait; exit $$made
	@said=$$(mktemp); { $(SPARK) > $$said 2>&1; spark=$$?; echo; cat $$said; rm -f $$said; exit $$spark; } & beside=$$!; \
		main=0; $(PYTEST) || main=$$?; wait $$beside && exit $$main
endif

test-long: $(VENV)/dev.stamp   ## fuzz with fresh seeds, draw millions, race for long: LAPWING_SEED=... repeats a run
	@requirements/debian.sh debootstrap coq
	@seed=$${LAPWING_SEED:-$$($(BIN)/python -c 'import secrets; print(secrets.randbits(32))')} && \
		echo "LAPWING_SEED=$$seed" && \
		LAPWING_SEED=$$seed $(PYTEST) -m long --hypothesis-profile=long --hypothesis-seed=$$seed && \
		{ ! $(HAS_JAVA) || $(MAKE) --no-print-directory $(VENV)/spark.stamp; } && \
		LAPWING_SEED=$$seed $(SPARK) -m long --hypothesis-profile=long --hypothesis-seed=$$seed

check: check-quick types figures prose editor  ## lint, layering, the trusted path, types, counts, plain words, the editor

check-quick: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python scripts/trusted_path.py

types: $(VENV)/dev.stamp       # of all, or with TYPES=src of the package alone
	@$(BIN)/mypy $(TYPES)

figures: $(VENV)/dev.stamp
	@$(BIN)/python scripts/architecture_figures.py

prose: $(VENV)/dev.stamp
	@$(BIN)/python scripts/prose.py

editor:
	@scripts/console-editor/build.sh --check

bench: $(VENV)/dev.stamp       ## measure, as ratios against peers and floors
	@for file in benchmarks/[a-z]*.py; do $(BIN)/python $$file || exit 1; done

QUICKLY = noise.py|start.py|ledger.py|accounting.py --quick|serving.py --quick|wire.py --quick
QUICKLY := $(QUICKLY)|padded.py --rows 100000 --seconds 3|queries.py 500000 --repeats 1 --without-opendp
bench-history: $(VENV)/dev.stamp  ## keep the ratios of what takes seconds to measure, and draw the page of their history anew
	@echo '$(QUICKLY)' | tr '|' '\n' | while read -r run; do LAPWING_BENCH_HISTORY=1 $(BIN)/python benchmarks/$$run || exit 1; done
	@$(BIN)/python scripts/benchmark_page.py --write

docs: $(VENV)/docs.stamp       ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "site/index.html"

dist: $(VENV)/run.stamp        ## build the commit into dist/: wheel, source, bill of materials, checksums
	@$(BIN)/python scripts/distribution.py

LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-header --upgrade
AS_HERE = --annotation-style line --constraint requirements/dev.lock
SERVICE = --extra server --extra postgres --extra adbc --extra joins

# 450 MB that few need: in a lock of its own, with the client of Spark Connect.
NO_SPARK = $(foreach name,pyspark py4j grpcio grpcio-status googleapis-common-protos protobuf,--no-emit-package $(name))

lock: $(VENV)/dev.stamp        ## choose and pin the newest allowed versions
	@echo uv | $(LOCK) - --no-annotate --output-file requirements/installer.lock
	@$(LOCK) pyproject.toml --group build --extra server --extra plots --extra shell --extra xlsx --no-annotate --output-file requirements/run.lock
	@$(LOCK) pyproject.toml --group build --group dev --all-extras $(NO_SPARK) --no-annotate --output-file requirements/dev.lock
	@$(LOCK) --group docs --constraint requirements/dev.lock --no-annotate --output-file requirements/docs.lock
	@printf '%s\n' numpy python-flint cryptography typing-extensions | $(LOCK) - --constraint requirements/run.lock --no-annotate --output-file requirements/core.lock
	@$(MAKE) --no-print-directory lock-extras

lock-extras: $(VENV)/dev.stamp ## pin what extras bring, and what a service takes, as it is pinned for development
	@$(LOCK) pyproject.toml --all-extras $(NO_SPARK) $(AS_HERE) --output-file requirements/extras.lock
	@$(LOCK) --group spark $(AS_HERE) --output-file requirements/spark.lock
	@$(LOCK) pyproject.toml $(SERVICE) $(AS_HERE) --output-file requirements/service.lock

$(VENV)/run.stamp: requirements/run.lock pyproject.toml | $(VENV)/bin/python
	@echo "Setting up (once) ..."
	@requirements/install.sh $(BIN)/python requirements/run.lock
	@$(INSTALL)
	@touch $@

$(VENV)/docs.stamp: requirements/docs.lock | $(VENV)/bin/python
	@requirements/install.sh $(BIN)/python requirements/docs.lock
	@touch $@

$(VENV)/spark.stamp: requirements/spark.lock | $(VENV)/dev.stamp
	@echo "Installing Spark for its tests (once, 450 MB) ..."
	@requirements/install.sh $(BIN)/python requirements/spark.lock
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock pyproject.toml | $(VENV)/bin/python
	@echo "Setting up for development (once) ..."
	@requirements/install.sh $(BIN)/python requirements/dev.lock
	@$(INSTALL)
	@touch $@ $(VENV)/run.stamp $(VENV)/docs.stamp

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Lapwing needs Python 3.11 or later; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV)

clean:                         ## remove the environment, the demos and everything built
	@rm -rf $(VENV) demo demo-* dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis

help:                          ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(firstword $(MAKEFILE_LIST)) | while IFS='	' read -r target text; do printf '  make %-13s %s\n' "$$target" "$$text"; done
