# make demo    find a real bug in a real llama-server, in seconds
# make test    run all tests
# make test-mlx, test-vllm, test-sglang
#              run the tests of another engine, where it is installed (CONTRIBUTING.md says how)
# make check   layers, lint, format, types
# make bench   measure how good and how fast the fuzzer is, in its short form

VENV ?= .venv
BIN := $(VENV)/bin
# The first of these that is recent enough makes the environment.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-mlx test-vllm test-sglang check bench install

# Exit status 1 says "found a bug": here that is what has to happen.
demo: install
	$(BIN)/stalefuzz run -x --scenario adapter-scale --seed 1; test $$? -eq 1

# Three at a time, since tests wait for servers about a third of their time; files stay whole for their fixtures' sake.
test: install
	$(BIN)/python -m pytest -n 3 --dist loadfile

test-mlx test-vllm test-sglang: test-%: install
	$(BIN)/python -m pytest -m $* -rs tests/engines

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py

bench: install
	$(BIN)/stalefuzz bench

install: $(INSTALLED)

# Debian's python3 has no ensurepip: there the pip of the system fills the environment.
$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "stalefuzz needs Python 3.11 or newer"; exit 1; }
	$(PYTHON) -m venv $(VENV) 2>/dev/null || $(PYTHON) -m venv --clear --without-pip $(VENV)
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m pip --python $(BIN)/python install --quiet pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
