# Each alone on a fresh machine with Python 3.10 or 3.11: `make run`, `make demo` and `make test`.

# The first of these that runs and has the right version; recbole's ray has no wheel for Python 3.12 and later.
PYTHON ?= $(shell for name in python3.11 python3.10 python3; do \
	$$name -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 10), (3, 11)))' 2>/dev/null && echo $$name && break; done)
VENV := .venv
INSTALLED := $(VENV)/.installed

.PHONY: run demo test lint bench browser clean

run: $(INSTALLED)  ## train SASRecCD on ml-100k, rerank it, print the table
	$(VENV)/bin/python run_leaprec.py

demo: $(INSTALLED)  ## a small study on ml-100k, and its report
	$(VENV)/bin/python run_leaprec.py study --spec=properties/study/ml-100k.yaml --output_dir=output/demo

test: $(INSTALLED) lint browser  ## the whole suite
	$(VENV)/bin/python -m pytest

lint: $(INSTALLED)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

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
	@test -n "$(PYTHON)" || { echo "Python 3.10 or 3.11 is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .hypothesis .ruff_cache
