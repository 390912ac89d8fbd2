# Two commands on a fresh machine: `make demo` and `make test`. Everything else is a convenience.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test quick lint format docs gallery dist bench clean

install: $(STAMP)

# torch goes first and exactly as pinned: it is by far the largest part, and a range could pull another build.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs,all]'
	touch $(STAMP)

demo: install
	$(BIN)/softclt demo --out demo-results

# Two processes, a file of tests at a time: files have fixtures that take long to make. One thread each: others would
# wait for each other in a busy loop.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile

# For minute-by-minute work: no mypy, and none of the tests marked slow. `make test` runs them all.
quick: install
	$(BIN)/ruff check .
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadfile -m "not slow"

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The documentation as a site in build/site; open index.html there, or serve the folder.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The pictures of docs/gallery.md, each by the code below it; some minutes.
gallery: install
	$(BIN)/python docs/site/gallery.py

# The wheel and the archive of the sources in dist/.
dist: install
	rm -rf dist
	$(BIN)/python -m build

bench: install
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/distances.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache demo-results build dist
