# Everything runs in .venv; each target is quick the second time.
PYTHON ?= python3
BIN := .venv/bin
TASK ?= pusht
SYSTEM := libegl1 libosmesa6 libgl1 xvfb chromium

.PHONY: setup play test lint fuzz reproduce release-models results docs sheets screenshots system clean

setup: .venv/base

play: .venv/base
	$(BIN)/python play.py --env $(TASK) --model pretrained/$(TASK)/qqworld.onnx

test: .venv/full system
	$(BIN)/python -m pytest -n 2

lint: .venv/full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Model files: ten million runs of the reader under coverage-guided fuzzing (some hours), then mutants in real sessions.
RUNS ?= 10000000
MUTANTS ?= 20000
fuzz: .venv/full
	$(BIN)/python -m pip install --quiet 'atheris>=3'
	mkdir -p build/fuzz
	$(BIN)/python -m tests.fuzz.model_file -runs=$(RUNS) -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
	  -artifact_prefix=build/fuzz/ build/fuzz tests/fuzz/corpus
	$(BIN)/python -m tests.agent.world_models.test_model_file_fuzz $(MUTANTS)

# The shipped models of TASK from scratch: says how long it will take, and goes on where it was stopped.
reproduce: .venv/full system
	$(BIN)/python -m study.reproduce --env $(TASK)

# The models that `reproduce` made, into pretrained/, from a clean revision.
release-models: .venv/full
	$(BIN)/python -m study.release --env $(TASK)

# The tables for TASK: every planner, near and far goals.
results: .venv/base system
	$(BIN)/python -m study.measure --env $(TASK)

# The tables of README.md and docs/, from committed results and recipes.
docs: .venv/full
	$(BIN)/python -m study.documents
	$(BIN)/python -m study.page

# The window on each task, and a moving picture of it.
screenshots: .venv/base system
	$(BIN)/python -m study.screenshots --out docs

# One look tells whether the data is any good.
sheets: .venv/base system
	for task in two-room pusht reacher cube; do \
	  $(BIN)/python -m envs.collect --env $$task --episodes 8 --seed 1 --overwrite --out data/sheet-$$task.h5 && \
	  cp data/sheet-$$task.png docs/data-$$task.png || exit 1; \
	done

# MuJoCo renders without a screen through the first three; the window and the report page are tested with the others.
system:
	@command -v dpkg > /dev/null || exit 0; \
	missing=$$(for package in $(SYSTEM); do dpkg -s $$package > /dev/null 2>&1 || echo $$package; done); \
	[ -z "$$missing" ] && exit 0; \
	root=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	$$root true 2> /dev/null || { echo "please install" $$missing; exit 0; }; \
	echo "installing" $$missing; \
	$$root apt-get update -qq; \
	$$root apt-get install -y -qq --no-install-recommends $$missing > /dev/null || echo "could not install" $$missing

clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache

.venv/base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/full: .venv/base
	$(BIN)/python -m pip install --quiet --editable '.[train,dev,cluster]'
	touch $@
