PYTHON ?= python3

.PHONY: help env demo test test-all test-shuffled check wheel test-most test-checks test-slow \
	test-oldest test-demo coverage matrix sizes docs screenshots bench bench-quick faults faults-quick mutants several-machines clean

help:
	@echo "make demo           text a table of people from a real Airflow to a service on this machine, twice, and check it"
	@echo "make test           style, types, layers, documentation, wheel, and the tests on both kinds of ledger"
	@echo "make test-all       make test, then slow tests, a whole Airflow, pages in a browser, faults, the oldest supported Airflow"
	@echo "make test-shuffled  make test-all three times, with the tests in random order, once beside a load"
	@echo "make coverage       report the lines that no test of make test runs"
	@echo "make matrix         run the tests on every Airflow version; nox -s 'airflow(3.1.8)' for one"
	@echo "make sizes          print the lines of each room of the package against its budget"
	@echo "make docs           build the documentation, docs/_build/html/docs/index.html; a broken link is an error"
	@echo "make screenshots    take the pictures of the pages that the documentation shows, docs/images/; needs a Chromium"
	@echo "make bench          measure what sending costs against its goals; BENCH='--only rate,large --rows 1000000' for a part"
	@echo "make bench-quick    the same with small sizes, without judging times"
	@echo "make faults         play orders of events, break every step of a send, the package itself, and other senders: hours"
	@echo "make faults-quick   a part of that"
	@echo "make mutants        change the engine in a thousand places, and print the changes that no test notices: an hour"
	@echo "make several-machines  kill a Celery worker, cut one off from PostgreSQL, and restart PostgreSQL, in mid-send"
	@echo "make env            only make .venv, with what the other commands need"
	@echo "make clean          remove .venv and everything that was made here"

# As pip does, it trusts what the machine trusts.
export UV_SYSTEM_CERTS := 1

# With it, each of hundreds of processes would compile all of Airflow.
unexport PYTHONDONTWRITEBYTECODE

env: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	@echo "Installing Airflow and this package into .venv ..."
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	@.venv/bin/uv pip install --quiet --python .venv/bin/python -c constraints.txt -e '.[dev]'
	@touch $@

demo: env
	@.venv/bin/python -m demo

test: env
	@./.ci/test

test-all: test
	@./.ci/rest

check: env
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

# The tests run on what is given out: the wheel, made of the source distribution.
wheel: env
	@rm -rf build dist
	@.venv/bin/python -m build --no-isolation --outdir dist . >/dev/null
	@.venv/bin/twine check --strict dist/*
	@.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --target build/wheel dist/*.whl
	@PYTHONPATH=build/wheel PYTHONSAFEPATH=1 .venv/bin/python -c \
		'import airflow_provider_sms as p; assert "/build/wheel/" in p.__file__, p.__file__'

# Processes of pytest: more than cores, since many tests wait for a server or a thread. Who runs which:
# tests/support/shuffle.py.
WORKERS := 3
PYTEST := .venv/bin/pytest
PARALLEL = --numprocesses $(WORKERS) --no-loadscope-reorder $(SHUFFLE)

# Files with tests that take seconds, or need more than packages of Python. Those of minutes come first: left to the end, one
# of them would run alone. What only computes is among them, while Airflows are waited for.
LONGEST := $(patsubst %,tests/%.py,acceptance/test_whole faults/test_orders acceptance/test_first_half_hour)
SLOW := $(wildcard tests/faults/test_*.py) $(shell grep -rl --include='test_*.py' 'mark\.slow' tests)

test-most test-slow: export PYTHONPATH := $(CURDIR)/build/wheel
test-most test-slow: export PYTHONSAFEPATH := 1

test-most:
	@$(PYTEST) $(PARALLEL) -m "not slow"

# What runs beside others prints all at once, so that they are not mixed.
PRINTED = > build/$@.log 2>&1; status=$$?; cat build/$@.log; exit $$status

test-checks:
	@$(MAKE) --no-print-directory check docs $(PRINTED)

test-slow: WORKERS := 4
test-slow:
	@$(PYTEST) $(PARALLEL) -m "slow and not nightly" $(LONGEST) $(filter-out $(LONGEST),$(sort $(SLOW))) $(PRINTED)

# What Airflow and the package call each other by, on SQLite: the driver of PostgreSQL is the same. The matrix has all.
# One load is enough for all lots.
test-oldest: override SHUFFLE := $(filter-out --beside-a-load,$(SHUFFLE))
test-oldest: WORKERS := 2
test-oldest: WITH := cli/test_definitions.py decorators execution/test_hidden.py execution/test_waits.py hooks notifications operators \
	plugins sensors triggers test_contracts.py test_provider_info.py
test-oldest:
	@.venv/bin/nox -s "airflow(3.1.8)" -- $(PARALLEL) -m "not slow" -k "not postgresql" $(WITH:%=tests/%) $(PRINTED)

# As `make demo` does: on this folder.
test-demo:
	@.venv/bin/python -m demo $(PRINTED)

coverage: env
	@$(PYTEST) $(PARALLEL) --cov --cov-report=term:skip-covered -m "not slow"

# Each run prints its seed; SHUFFLE="--shuffle 1764500000" repeats the order.
test-shuffled: env
	@failed=0; for load in "" --beside-a-load ""; do \
		$(MAKE) --no-print-directory test-all SHUFFLE="--shuffle $$(date +%s) $$load" || failed=1; \
	done; exit $$failed

matrix: env
	@.venv/bin/nox -s airflow

# The whole repository is the source, so that pages link to each other as they do in its web view: see docs/conf.py.
docs: env
	@.venv/bin/python -m sphinx --conf-dir docs --fail-on-warning --keep-going --quiet . docs/_build/html

sizes:
	@$(PYTHON) tests/support/sizes.py

screenshots: env
	@PYTHONPATH=tests:. .venv/bin/python -m support.screenshots

bench: env
	@.venv/bin/python -m benchmarks $(BENCH)

bench-quick: env
	@.venv/bin/python -m benchmarks --quick $(BENCH)

FAULTS := PYTHONPATH=tests:. .venv/bin/python -m support.faults

ORDERS := PYTHONPATH=tests:. .venv/bin/python -m support.orders

# Each of them runs, whatever became of the one before it.
faults: env
	@failed=0; \
	$(ORDERS) || failed=1; \
	$(ORDERS) --drawn 2000 || failed=1; \
	$(ORDERS) --defects || failed=1; \
	$(FAULTS) || failed=1; \
	$(FAULTS).mutants || failed=1; \
	$(FAULTS).peers || failed=1; \
	SMS_TESTS_NEED_MACHINES=1 $(PYTEST) -m nightly tests/acceptance tests/docs || failed=1; \
	exit $$failed

# Without the real Airflow, which takes longest.
faults-quick: env
	@$(FAULTS) --quick --only steps network sigkills failover steps-reconcile network-reconcile

# Without its display, which rewrites one line.
mutants: env
	@mkdir -p build; PYTHONPATH=tests:. .venv/bin/mutmut run >build/mutants.log 2>&1 || { tail -c 2000 build/mutants.log; exit 1; }
	@PYTHONPATH=tests:. .venv/bin/mutmut results

several-machines: env
	@SMS_TESTS_NEED_MACHINES=1 $(PYTEST) -v -s tests/acceptance/test_several_machines.py

clean:
	rm -rf .venv .nox .demo build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
	find . -name __pycache__ -prune -exec rm -rf {} +
