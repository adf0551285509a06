# Everything runs in .venv; each target is quick the second time.
PYTHON ?= python3
BIN := .venv/bin
TASK ?= pusht

.PHONY: setup play test lint clean

setup: .venv/base
play: .venv/base
	$(BIN)/python play.py --env $(TASK) --model qqworld.onnx
test: .venv/full
	$(BIN)/python -m pytest -n 2
lint: .venv/full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache

.venv/base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/full: .venv/base system-gl.sh
	$(BIN)/python -m pip install --quiet --editable '.[train,dev]'
	touch $@
