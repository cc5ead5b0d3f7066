# make quickstart   raw sample -> checkpoint, in an environment of its own
# make test         lint, types and all tests, in the same environment
# make fast         an answer in two minutes: without the slow tests; of one room: make fast ROOM=clean
# make docs         the documentation site, in build/docs
# make exhaustive   the properties again: twenty times the examples, shapes at full size (hours)
# make parity       packs, URLs and vocabularies against the packages that they reproduce, in environments with these
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ROOM_TESTS = $(if $(ROOM),$(or $(wildcard $(foreach place,$(ROOM) $(ROOM).py test_$(ROOM).py,tests/$(place) corpusforge/$(place))),\
	$(error no room "$(ROOM)": docs/architecture.md lists them)))

.PHONY: quickstart test lint fast docs exhaustive parity clean-runs

quickstart: $(STAMP)
	$(BIN)/corpusforge run quickstart --output runs/quickstart

test: $(STAMP) lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fast: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal --hypothesis-profile fast -m "not slow" $(ROOM_TESTS)

docs: $(STAMP)
	$(BIN)/python -m sphinx --builder html --fresh-env --fail-on-warning --keep-going --quiet docs build/docs

exhaustive: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal --hypothesis-profile exhaustive -m "hypothesis or exhaustive"

parity: .venv-tfds/.installed .venv-tfds3/.installed .venv-datatrove/.installed .venv-transformers4/.installed
	.venv-tfds/bin/python -m pytest tests/parity
	.venv-tfds3/bin/python -m pytest tests/parity/test_c4_tfds_2.py
	.venv-datatrove/bin/python -m pytest tests/parity
	.venv-transformers4/bin/python -m pytest tests/parity/test_transformers4.py

.venv-%/.installed: benchmarks/requirements-%.txt pyproject.toml
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet -r $< --editable '.[beam]' pytest hypothesis
	touch $@

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "CorpusForge needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

clean-runs:
	rm -rf runs
