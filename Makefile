# Needs Python 3.11, 3.12 or 3.13, and make. Everything is installed into .venv; nothing outside this directory changes.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The machine's own python3 if it will do: that is the one for which packages are at hand. Otherwise the newest.
# Each is run, because a command that is there may still have no Python behind it.
SUITS := -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
  if "$$python" $(SUITS) 2> /dev/null; then echo "$$python"; break; fi; done)
FILE ?= tuned_examples/orangetree.yaml
ARGS ?=

VENV := .venv
# Written as the last step, so that an interrupted installation is taken up again.
INSTALLED := $(VENV)/.installed
WARM := ray.rllib.algorithms.ppo, ray.tune, torch._dynamo, gymnasium, ale_py, mujoco, grpc, wandb, \
  tensorboard, matplotlib.pyplot, rliable.library, click, rich.live, pytest, hypothesis

# Empty: Python keeps its byte code in any environment. A run starts many processes; without it, every
# start of Ray compiles 2 MB of source.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install train quickstart test lint docs bench clean

help: ## list the targets
	@while IFS= read -r line; do \
	  if [[ $$line =~ ^([a-z]+):.*\#\#\ (.*) ]]; then \
	    printf '  make %-11s %s\n' "$${BASH_REMATCH[1]}" "$${BASH_REMATCH[2]}"; fi; \
	done < Makefile

install: $(INSTALLED) ## make .venv and install everything into it

# pip is brought up to date first: the one that comes with Python 3.11 resolves twice as slowly.
# Byte code: pip would compile all 20 000 modules; importing what we use compiles a quarter of them, and
# shows that the installation works.
$(INSTALLED): requirements.txt pyproject.toml
	@python="$(PYTHON)"; "$${python:-false}" $(SUITS) 2> /dev/null || { \
	  echo "$${python:-python3}: not found, or not Python 3.11, 3.12 or 3.13. Install one of them, or name it:" \
	  "make PYTHON=/path/to/python3.13 $(MAKECMDGOALS)" >&2; exit 1; }; \
	echo "[1/4] making $(VENV) with $$python"; \
	"$$python" -m venv $(VENV)
	@$(VENV)/bin/python -m pip install -qq --upgrade pip==26.3
	@echo "[2/4] installing requirements.txt (one to three minutes)"
	@$(VENV)/bin/python -m pip install --no-compile --progress-bar off -r requirements.txt 2>&1 \
	  | tee $(VENV)/install.log \
	  | while read -r word rest; do \
	      case $$word in \
	        Collecting|Processing) found=$$(( $${found:-0} + 1 )); (( found % 25 )) || echo "      $$found packages found" ;; \
	        Installing) echo "      unpacking" ;; \
	      esac; \
	    done \
	  || { grep ^ERROR $(VENV)/install.log || true; echo "installation stopped; pip's output is in $(VENV)/install.log" >&2; exit 1; }
	@echo "[3/4] installing rllib_conspec from this directory"
	@$(VENV)/bin/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@echo "[4/4] importing everything once"
	@$(VENV)/bin/python -c "import $(WARM)"
	@touch $@

train: install ## OrangeTree with ML-Agents players; FILE=tuned_examples/keys2.yaml chooses another, ARGS="..." adds flags
	@$(VENV)/bin/rllib train -f $(FILE) $(ARGS)

quickstart: install ## learn the 1-key task in a few minutes and show the critical steps found
	@$(VENV)/bin/rllib train -f tuned_examples/keys1.yaml --experiment-name quickstart $(ARGS)

# Three processes for two cores: the tests on a real Slurm, which mostly wait, are one. ARGS=-n0 runs all in one.
test: lint ## lint, then all tests; ARGS="tests/cli -x" narrows them
	@$(VENV)/bin/python -m pytest -n 3 $(ARGS)

lint: install ## ruff: rules and formatting
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

docs: install ## build the documentation as a site, into site/
	@$(VENV)/bin/python docs/make_site.py

bench: install ## run the benchmarks (half an hour)
	@for name in parts conspec_step overhead iteration workers memory; do \
	  echo "== benchmarks/$$name.py"; $(VENV)/bin/python benchmarks/$$name.py; \
	done

clean: ## remove .venv and caches; results stay
	@rm -rf $(VENV) build dist site .cache *.egg-info .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
