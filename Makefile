# Everything happens in .venv, which the first command makes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check bench picture clean

demo: .venv/installed
	$(BIN)/uqbench run quick
	$(BIN)/uqbench report quick --out report

test: .venv/installed-test
	$(BIN)/python -m pytest

check: .venv/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: .venv/installed-bench
	$(BIN)/python -m pytest tests/benchmarks -o addopts=--import-mode=importlib -s

# The README's picture: the report of the demo, as a browser shows it.
CHROMIUM ?= chromium
picture: demo
	$(CHROMIUM) --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
		--hide-scrollbars --user-data-dir=$$(mktemp -d) --window-size=1080,1920 \
		--screenshot=docs/report.png file://$(CURDIR)/report/index.html

clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

.venv/installed-bench: .venv/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,bench]'
	touch $@
