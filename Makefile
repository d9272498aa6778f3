# The only place commands are written.  `make` alone lists them.

VENV ?= .venv
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
JOBS ?= 2
PORT ?= 8000

ifeq ($(OS),Windows_NT)
  BIN := $(VENV)/Scripts
  CANDIDATES := python py python3
else
  BIN := $(VENV)/bin
  CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
endif
PY := $(BIN)/python
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in $(CANDIDATES); do "$$p" -c "$(NEW_ENOUGH)" 2>/dev/null && { echo "$$p"; break; }; done)

# One thread everywhere: more of them change the last digits of a sum.
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export PYTHONUTF8 := 1
export PYTHONHASHSEED := 0
# Another project's companion must not stand in for ours.
unexport PYTHONPATH
# A reader's own Jupyter, IPython and matplotlib settings stay out of the book.
QUIET := IPYTHONDIR="$(CURDIR)/_build/ipython" MPLCONFIGDIR="$(CURDIR)/_build/matplotlib" \
         JUPYTER_PREFER_ENV_PATH=1
# The oldest path that torch's kernels have: numbers that hold there hold anywhere.
OLDEST := ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=SSE41

# The environment is rebuilt when the lock, the package's settings or the folder change.
KEY := $(shell { cat requirements.txt pyproject.toml; echo "$(CURDIR)"; } | cksum | tr -d ' ')
READY := $(VENV)/ready-$(KEY)

PAGES := book/notebooks
SITE := _build/html
PYTEST := $(QUIET) $(PY) -m pytest
NBVAL := $(PYTEST) $(PAGES) --nbval --nbval-current-env --nbval-cell-timeout=300 \
         --color=no --dist loadfile -n $(JOBS) -q
REPORTS := _build/tests

.PHONY: help book test check notebooks ledger lab serve bench clean
.DEFAULT_GOAL := help

help:
	@echo "make book       build the site into $(SITE); runs no chapter"
	@echo "make test       every equation, every exercise, every output, on two kernel paths"
	@echo "make check      the static checks: style, types, imports, stale pages (under a minute)"
	@echo "make notebooks  run the chapters whose code changed (text -> book/notebooks);"
	@echo "                CHAPTER=name runs that one, whatever changed"
	@echo "make ledger     measure every equation's error again (book/checked.json)"
	@echo "make lab        open the chapters in Jupyter Lab"
	@echo "make serve      show the built site on http://localhost:$(PORT)"
	@echo "make bench      the companion's speed against torch's own functions"
	@echo "make clean      remove what make made: $(VENV), _build, caches"

$(READY):
	@test -n "$(PYTHON)" || { echo "Two Chain Rules needs Python 3.11 or newer, and found none. Install one, or name it: make PYTHON=/path/to/python3.12"; exit 1; }
	@"$(PYTHON)" -c "$(NEW_ENOUGH)" || { echo "Two Chain Rules needs Python 3.11 or newer; $(PYTHON) is older, or does not run. Name another: make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Setting up $(VENV) with $(PYTHON): about 180 packages, 0.4 GB to download, 1.6 GB on disk, one or two minutes. Once."
	@"$(PYTHON)" -m venv "$(VENV)" || { echo "python -m venv failed. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@torch=$$(grep '^torch==' requirements.txt); \
	 echo "1/3 $$torch, the CPU build from $(TORCH_INDEX) if it can be reached"; \
	 $(PY) -m pip install -qq --isolated --disable-pip-version-check --retries 0 --timeout 5 \
	   --index-url "$(TORCH_INDEX)" "$$torch" 2>/dev/null \
	 || { echo "    not reachable: from the usual index instead (on Linux that may be the CUDA build, 3 GB)"; \
	      $(PY) -m pip install -qq --disable-pip-version-check "$$torch"; }
	@echo "2/3 the packages of requirements.txt"
	@$(PY) -m pip install -qq --disable-pip-version-check -r requirements.txt
	@echo "3/3 companion, this project's own package"
	@$(PY) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@rm -f "$(VENV)"/ready-* && touch "$@"
	@echo "Ready."

book: $(READY)
	@$(PY) tools/notebooks.py check
	@rm -rf $(SITE) _build/.doctrees
	@mkdir -p _build
	@$(PY) -W ignore -c "from jupyter_book.cli.main import main; main()" build $(PAGES) \
	  --config "$(CURDIR)/_config.yml" --toc "$(CURDIR)/_toc.yml" --path-output . \
	  -W -n --keep-going --quiet > _build/book.log 2>&1 && test -f $(SITE)/index.html \
	  || { cat _build/book.log; rm -rf $(SITE); exit 1; }
	@echo "The site is in $(SITE): open $(SITE)/index.html, or type: make serve"

# Three runs, and their sum as the last line.  All of them run, even if one fails.
test: $(READY)
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	@failed=0; \
	echo "1/3 the companion, the equations, the exercises, the gates"; \
	$(PYTEST) tests -n $(JOBS) --dist loadfile -q --junitxml=$(REPORTS)/code.xml || failed=1; \
	echo "2/3 every output of every chapter, run again and compared"; \
	$(NBVAL) --junitxml=$(REPORTS)/chapters.xml || failed=1; \
	echo "3/3 the same on the oldest kernel path"; \
	$(OLDEST) $(NBVAL) --junitxml=$(REPORTS)/oldest.xml || failed=1; \
	$(PY) tools/total.py $(REPORTS)/code.xml $(REPORTS)/chapters.xml $(REPORTS)/oldest.xml || failed=1; \
	exit $$failed

check: $(READY)
	@mkdir -p _build
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	@$(PY) -c "from importlinter.cli import lint_imports_command; lint_imports_command()" \
	  > _build/imports.log 2>&1 || { cat _build/imports.log; exit 1; }
	$(PY) tools/notebooks.py check

notebooks: $(READY)
	@$(QUIET) $(PY) tools/notebooks.py run $(if $(CHAPTER),$(CHAPTER) --force)

ledger: $(READY)
	@$(PYTEST) tests/test_equations.py -q -n $(JOBS) --measure book/checked.json
	@$(PY) tools/ledger.py
	@$(QUIET) $(PY) tools/notebooks.py run what_is_checked
	@echo "Commit book/checked.json and the page what_is_checked with your change."

lab: $(READY)
	$(PY) -m jupyterlab $(PAGES)

serve: $(READY)
	@test -f $(SITE)/index.html || { echo "There is no site yet; type: make book"; exit 1; }
	@echo "http://localhost:$(PORT) (Ctrl-C stops it)"
	@$(PY) -m http.server $(PORT) --bind localhost --directory $(SITE) 2>&1 \
	  || { echo "Is port $(PORT) taken? Try: make serve PORT=8001"; exit 1; }

bench: $(READY)
	@$(PY) benchmarks/bench.py

clean:
	rm -rf $(VENV) _build build .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache *.egg-info
	find book -name .ipynb_checkpoints -prune -exec rm -rf {} +
	find . -name __pycache__ -prune -exec rm -rf {} +
