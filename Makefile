# Each alone on a fresh machine with Python 3.11 or newer: `make run`, `make demo` and `make test`.

# python3 where it is new enough, else the newest python3.x on the PATH; `make PYTHON=python3.13 ...` takes another.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(shell for name in python3 $$(IFS=:; ls $$PATH 2>/dev/null | grep -xE 'python3\.[0-9]+' | sort -rVu); do \
	$$name -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$name && break; done)
endif
VENV := .venv
INSTALLED := $(VENV)/.installed
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: run demo test quick fuzz docs docs-test lint bench browser constraints newest oldest pythons wheel release-check clean

run: $(INSTALLED)  ## train SASRecCD on ml-100k, rerank it, print the table
	$(VENV)/bin/python run_leaprec.py

demo: $(INSTALLED)  ## a small study on ml-100k, and its report
	$(VENV)/bin/python run_leaprec.py study --spec=properties/study/ml-100k.yaml --output_dir=output/demo

# As many tests at a time as there are cores, four at most: each process takes up to 2 GB. Those that share a start stay together.
PYTEST := -m pytest -n auto --maxprocesses=4 --dist=loadgroup

test: $(INSTALLED) lint browser  ## linters, types, the whole suite, and how much of the package it runs
	$(VENV)/bin/python $(PYTEST) --cov

quick: $(INSTALLED)  ## the tests that take a moment, without Ray and without a browser
	$(VENV)/bin/python $(PYTEST) -m "not slow and not ray and not browser"

fuzz: $(INSTALLED)  ## an hour of odd datasets, command lines, damaged files and requests; `make test` has two minutes of it
	LEAPREC_FUZZ_SECONDS=3600 $(VENV)/bin/python -m pytest tests/fuzz

SITE := docs/_build/html
docs: $(INSTALLED)  ## the site, offline: warnings are errors, and every link is checked
	$(VENV)/bin/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs $(SITE)
	$(VENV)/bin/python docs/check_links.py $(SITE)

docs-test: $(INSTALLED)  ## the tests of the site and of the README alone: tutorials and command lines are run; a part of `make test`
	$(VENV)/bin/python -m pytest tests/docs tests/test_readme.py

lint: $(INSTALLED)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/oxlint --deny-warnings recbole_leaprec/page/js

# The report's page is tested in a real browser. Debian's own, since selenium would download one.
browser:  ## Debian's chromium and its driver, where they are missing
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null && exit 0; \
	command -v apt-get >/dev/null || { echo "The tests need chromium and chromedriver on the PATH: please install them."; exit 1; }; \
	if [ "$$(id -u)" = 0 ]; then root=; elif command -v sudo >/dev/null; then root=sudo; else \
	echo "The tests need a browser: as root, apt-get install chromium chromium-driver"; exit 1; fi; \
	$$root apt-get update -q && \
	$$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium chromium-driver

bench: $(INSTALLED)  ## the speed of training and of reranking
	$(VENV)/bin/python benchmarks/train.py
	$(VENV)/bin/python benchmarks/rerank.py

$(INSTALLED): setup.cfg pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and no python3 on the PATH is one: install it" \
	"(Debian: apt-get install python3-venv), or say where it is: make PYTHON=/path/to/python3.13"; exit 1; }
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo "$(PYTHON) is older than Python 3.11 (or does not run)"; exit 1; }
	@echo "installing into $(VENV), with $$($(PYTHON) --version) ($$(command -v $(PYTHON))); this takes a few minutes"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(PIP_INSTALL) -c constraints.txt -e ".[test]"
	touch $@

# --- Versions. Each of these makes an environment under .environments/ and removes it when it is done.

# What is installed there; the versions that a build of torch adds to its own (2.13.0+cpu) are left out.
FREEZE := -m pip freeze --exclude-editable | sed 's/+cpu$$//'
TORCH ?= torch==2.13.0

# With the oldest Python that setup.cfg allows, because what has wheels for it has wheels for all.
constraints:  ## resolve the newest versions of everything anew: constraints.txt
	rm -rf .environments/constraints && $(PYTHON) -m venv .environments/constraints
	.environments/constraints/bin/python $(PIP_INSTALL) $(TORCH) -e ".[test]"
	{ echo "# Exact versions that the tests run with; made by \`make constraints\` with $$($(PYTHON) --version)."; \
	.environments/constraints/bin/python $(FREEZE); } > .environments/constraints.txt
	mv .environments/constraints.txt constraints.txt
	rm -rf .environments/constraints

newest: browser  ## the suite with the newest versions of everything, without constraints
	rm -rf .environments/newest && $(PYTHON) -m venv .environments/newest
	.environments/newest/bin/python $(PIP_INSTALL) $(TORCH) -e ".[test]"
	.environments/newest/bin/python $(FREEZE)
	.environments/newest/bin/python $(PYTEST)
	rm -rf .environments/newest

oldest: browser  ## the suite with the lower bounds of setup.cfg
	rm -rf .environments/oldest && $(PYTHON) -m venv .environments/oldest
	sed -nE 's/^    ([a-z]+)(\[.*\])? >= ([0-9.]+).*/\1==\3/p' setup.cfg > .environments/oldest.txt
	.environments/oldest/bin/python $(PIP_INSTALL) -c .environments/oldest.txt -e ".[test]"
	.environments/oldest/bin/python $(FREEZE)
	.environments/oldest/bin/python $(PYTEST)
	rm -rf .environments/oldest .environments/oldest.txt

# Every other version of Python that is new enough, on the PATH or in pyenv, once.
MINOR := import sys; print(*sys.version_info[:2], sep=".")
OTHER_PYTHONS ?= $(shell for name in $$(IFS=:; ls $$PATH 2>/dev/null | grep -xE 'python3\.[0-9]+') \
	$${PYENV_ROOT:-$$HOME/.pyenv}/versions/*/bin/python3; do $$name -c '$(NEW_ENOUGH)' 2>/dev/null && \
	echo "$$($$name -c '$(MINOR)') $$name"; done | grep -v "^$$($(PYTHON) -c '$(MINOR)') " | sort -suVk1,1 | cut -d' ' -f2)

pythons:  ## the wheel, `leaprec` and the suite on every other Python that is found
	@test -n "$(OTHER_PYTHONS)" || { echo "no other Python is there: OTHER_PYTHONS=\"/path/to/python3.13 ...\""; exit 1; }
	for python in $(OTHER_PYTHONS); do $(MAKE) wheel PYTHON=$$python || exit 1; done

# Where there is no CPU build of torch, the environment takes 6 GB.
WHEEL := $(CURDIR)/.environments/wheel
wheel: browser  ## the wheel by plain pip, a run of `leaprec` in another folder, then the suite, on PYTHON
	rm -rf $(WHEEL) && $(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w $(WHEEL)/dist .
	$(WHEEL)/bin/python $(PIP_INSTALL) "$$(ls $(WHEEL)/dist/*.whl)[test]"
	$(WHEEL)/bin/python --version && $(WHEEL)/bin/python -m pip check && $(WHEEL)/bin/python $(FREEZE)
	cd "$$(mktemp -d)" && $(WHEEL)/bin/leaprec doctor && $(WHEEL)/bin/leaprec
	$(WHEEL)/bin/python $(PYTEST)
	rm -rf $(WHEEL)

# What a release would hold. Nothing is uploaded.
RELEASE := $(CURDIR)/.environments/release
release-check: $(INSTALLED)  ## sdist and wheel: built, checked, and installed into an empty environment
	rm -rf dist build $(RELEASE) && $(PYTHON) -m venv $(RELEASE)
	$(VENV)/bin/python -m build --no-isolation --outdir dist . >/dev/null
	$(VENV)/bin/python -m twine check --strict dist/*
	$(VENV)/bin/python -m readme_renderer README.md -o $(RELEASE)/README.html
	$(RELEASE)/bin/python $(PIP_INSTALL) -c constraints.txt dist/*.whl
	$(RELEASE)/bin/python -m pip check
	cd "$$(mktemp -d)" && $(RELEASE)/bin/leaprec --version && $(RELEASE)/bin/leaprec doctor && $(RELEASE)/bin/leaprec --epochs=1
	rm -rf $(RELEASE)

clean:
	rm -rf $(VENV) .environments build dist docs/_build docs/results *.egg-info .pytest_cache .hypothesis .ruff_cache .mypy_cache
