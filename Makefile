PYTHON ?= python3

.PHONY: help env demo test test-newest test-whole test-oldest test-benchmarks matrix docs screenshots bench bench-quick faults faults-quick clean

help:
	@echo "make demo    text a table of people from a real Airflow to a service on this machine, twice, and check it"
	@echo "make test    run everything that CI runs"
	@echo "make matrix  run the tests on every Airflow version; nox -s 'airflow(2.11.2)' for one"
	@echo "make docs    build the documentation as a site, docs/_build/html/docs/index.html; a broken link is an error"
	@echo "make screenshots    take the pictures of the pages that the documentation shows, docs/images/; needs a Chromium"
	@echo "make bench   measure what sending costs against its goals; BENCH='--only rate,ledger --rows 1000000' for a part"
	@echo "make bench-quick    all of that with small sizes, without judging times"
	@echo "make faults  break every step of a send on purpose, the package itself, and others who send, and say what came of it"
	@echo "make faults-quick   a part of that"
	@echo "make env     only make .venv, with all that these need"
	@echo "make clean   remove .venv and all that was made here"

env: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	@echo "Installing Airflow and this package into .venv ..."
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@touch $@

demo: env
	@.venv/bin/python -m demo

test: env
	@./.ci/test

# The four of CI, which has two of them at work. What they print comes at once, so that it is not mixed; neither they
# nor what they start may find the package in the current folder. PYTEST='tests/hooks' is for a part of the first one.
PRINTED = > build/$@.log 2>&1; status=$$?; cat build/$@.log; exit $$status

test-newest test-whole: export PYTHONPATH := $(CURDIR)/build/wheel
test-newest test-whole: export PYTHONSAFEPATH := 1
test-newest: export COVERAGE_FILE := $(CURDIR)/build/.coverage.newest
test-newest:
	@.venv/bin/python -c 'import airflow_provider_sms as p; assert "/build/wheel/" in p.__file__, p.__file__'
	@.venv/bin/pytest --cov --cov-report= --durations=5 --ignore=tests/acceptance --ignore=tests/faults $(PYTEST) $(PRINTED)

# Airflow in processes of its own, and the fault suite.
test-whole: export COVERAGE_FILE := $(CURDIR)/build/.coverage.whole
test-whole:
	@test -n "$(PYTEST)" || { .venv/bin/pytest --cov --cov-report= --durations=5 tests/acceptance tests/faults $(PRINTED); }

# Without what takes long there, and what knows neither Airflow nor a library that is another one there; the matrix has
# all of it.
test-oldest:
	@.venv/bin/nox -s "airflow(2.11.2)" -- --durations=5 --ignore=tests/faults \
		--ignore=tests/sandbox --ignore=tests/service --ignore=tests/benchmarks \
		--ignore=tests/acceptance --ignore=tests/dags $(PRINTED)

# Small, and not judged: what else runs costs them time.
test-benchmarks: export PYTHONPATH := $(CURDIR)/build/wheel:$(CURDIR)
test-benchmarks: export PYTHONSAFEPATH := 1
test-benchmarks:
	@.venv/bin/python -m benchmarks --quick $(PRINTED)

matrix: env
	@.venv/bin/nox -s airflow

# The whole repository is the source, so that pages link to each other as they do in its web view: see docs/conf.py.
docs: env
	@.venv/bin/python -m sphinx --conf-dir docs --fail-on-warning --keep-going --quiet . docs/_build/html

screenshots: env
	@PYTHONPATH=tests:. .venv/bin/python -m support.screenshots $(SHOTS)

bench: env
	@.venv/bin/python -m benchmarks $(BENCH)

bench-quick: env
	@.venv/bin/python -m benchmarks --quick $(BENCH)

FAULTS := PYTHONPATH=tests:. .venv/bin/python -m support.faults

# Each of the four runs, whatever became of the one before it.
faults: env
	@failed=0; \
	$(FAULTS) || failed=1; \
	$(FAULTS).partitions || failed=1; \
	$(FAULTS).mutants || failed=1; \
	$(FAULTS).peers || failed=1; \
	exit $$failed

# Without the real Airflow, which takes longest.
faults-quick: env
	@$(FAULTS) --quick --only steps,tasks,kills,network,statuses,outage,proxies,schedules,sigkills,pairs,values,failover

clean:
	rm -rf .venv .nox .demo benchmarks/results build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
	find . -name __pycache__ -prune -exec rm -rf {} +
