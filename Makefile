# Everything happens in .venv, which the first command makes.
PYTHON ?= python3
BIN := .venv/bin

# Not more: each one spends 6 s on collecting all the tests.
TEST_PROCESSES ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: demo test test-quick faults check walkthroughs gate bench bench-compare fuzz thorough package-test docs site findings pages notebook paper validity pictures gallery-results clean

demo: .venv/installed
	$(BIN)/uqbench run quick
	$(BIN)/uqbench report quick --out report
	@echo "next: '. .venv/bin/activate' makes 'uqbench' a command of this shell; docs/first-report.md goes on at step 3"

test: .venv/installed-test
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --durations=40

# The fast tests alone, for the inner loop: those without the marker 'slow'.
test-quick: .venv/installed-test
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal -m "not slow"

# What the documents tell users to do is done, command by command, and what 'uqbench new' writes is installed and run.
walkthroughs: .venv/installed-test
	$(BIN)/python -m pytest tests/walkthroughs -o addopts="--import-mode=importlib -rs" -n $(TEST_PROCESSES)

# Runs on every engine in processes of their own, some of which are killed; then every command that writes is killed at so
# many of its writes, and what they hit is printed. KILLS=100 is the long form, which takes about twenty minutes.
KILLS ?= 14
faults: .venv/installed-test
	UQBENCH_KILLS=$(KILLS) $(BIN)/python -m pytest tests/faults --ignore tests/faults/test_kill_points.py \
		-o addopts="--import-mode=importlib -rs" -n $(TEST_PROCESSES) --dist worksteal
	UQBENCH_KILLS=$(KILLS) $(BIN)/python -m pytest tests/faults/test_kill_points.py -o addopts="--import-mode=importlib -rs" -s

check: .venv/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Are the numbers of suite quick still those of its baseline, or at least none of them worse?
gate: .venv/installed
	$(BIN)/uqbench gate quick --baseline baselines/quick.json

bench: .venv/installed-bench
	$(BIN)/python -m pytest tests/benchmarks -o addopts=--import-mode=importlib -s

# Which hot path got slower than in the run saved last, by ratio? Fails above SLOWER; the new times are saved in .benchmarks.
SLOWER ?= 1.3
bench-compare: .venv/installed-bench
	$(BIN)/python -m pytest tests/benchmarks/test_hot_paths.py -o addopts=--import-mode=importlib -q --benchmark-autosave \
		--benchmark-columns=min,median --benchmark-sort=name -k "not against"
	$(BIN)/python tools/compare_benchmarks.py .benchmarks $(SLOWER)

# Commands on 10,000 inputs that were changed at random; about a quarter of an hour.
fuzz: .venv/installed-test
	UQBENCH_FUZZ=10000 $(BIN)/python -m pytest tests/fuzz -o addopts=--import-mode=importlib -n $(TEST_PROCESSES)

# The long forms of tests: all checks over all plug-ins, the scaffolded package in a venv made from nothing.
thorough: .venv/installed-test
	UQBENCH_THOROUGH=1 $(BIN)/python -m pytest tests/testing -n $(TEST_PROCESSES) --dist loadfile

# The source archive and the wheel are built, and installed with their dependencies into environments made from nothing.
package-test: .venv/installed-test
	UQBENCH_FRESH=1 $(BIN)/python -m pytest tests/walkthroughs/test_new_plugins.py tests/walkthroughs/test_distribution.py \
		-o addopts="--import-mode=importlib -rs"

# The documentation as a site, build/docs: pages written from the source first, then all of them; a dead link is an error.
docs: pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the documentation: build/docs/index.html"

# The public leaderboard, build/leaderboard, from the exports in results/ and the predictions in submissions/ alone.
site: .venv/installed-test
	$(BIN)/python -m tools.published_results site results submissions build/leaderboard

# What the exports in results/ say, docs/results/index.md, and the numbers of other pages there.
findings: .venv/installed-test
	$(BIN)/python -m tools.results_page docs/results/index.md
	$(BIN)/python -m tools.result_tables docs/results

# The pages of docs/ that are written from the source.
pages: .venv/installed-test
	$(BIN)/python -m tools.api_page docs/api.md
	$(BIN)/python -m tools.cli_page docs/cli.md
	$(BIN)/python -m tools.dataset_page docs/datasets.md
	$(BIN)/python -m tools.functions_page docs/functions.md
	$(BIN)/python -m tools.method_page docs/methods.md
	$(BIN)/python -m tools.metric_page docs/metrics.md
	$(BIN)/python -m tools.network_page docs/networks.md

# The outputs of the notebook anew; 'make walkthroughs' executes it without keeping them.
notebook: .venv/installed-test
	$(BIN)/python -m tools.execute_notebook docs/notebook.ipynb

# docs/paper.md and the tables of docs/results/toy.md, from the facts in reports/ and the results in docs/results/paper.
paper: .venv/installed-test
	$(BIN)/python -m tools.paper_page docs/paper.md
	$(BIN)/python -m tools.toy_page docs/results/toy.md

# Error rates of the statistics, of change points and of the gate, written to docs/. The last table is of real runs: the
# first time they are made and kept in GATE_STORE; tools/README.md says how long everything takes.
GATE_STORE ?= runs/gate.db
validity: .venv/installed
	$(BIN)/python -m tools.validity_tables docs/statistics.md
	$(BIN)/python -m tools.validity_of_histories docs/gate.md
	$(BIN)/python -m tools.validity_of_gates docs/gate.md
	$(BIN)/uqbench run smoke --seeds 600 --store $(GATE_STORE)
	$(BIN)/python -m tools.gate_validity --store $(GATE_STORE) --again 60 docs/gate.md

# The gallery, a picture of every section of a report, and the README's picture: from the results in docs/gallery, as a
# browser shows them. A minute of processor time.
CHROMIUM ?= chromium
pictures: .venv/installed-test
	CHROMIUM=$(CHROMIUM) $(BIN)/python -m tools.gallery docs/gallery docs/report.png

# The results of the gallery anew, by the commands in docs/gallery/commands.txt.
gallery-results: .venv/installed-test
	PATH="$(CURDIR)/$(BIN):$$PATH" sh -e docs/gallery/commands.txt

clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing into .venv, 1.4 GB with torch: this may take some minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

.venv/installed-bench: .venv/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,bench]'
	touch $@
