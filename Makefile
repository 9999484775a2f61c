# The only list of commands. `make` alone prints it.
#
# Everything lives in .venv and target: nothing outside the project is touched, but for packages
# and a user that tools/requirements.sh adds when it runs as root, and the servers' cache.
# Set-up is quick the second time: packages are installed again when tools/requirements*.txt change,
# the engine is built again when Rust changes, or the profile: tests have `ci`, a user has `release`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; \
	done || true)
VENV := .venv
PY := $(VENV)/bin/python
PACKAGES := $(VENV)/.packages
PACKAGES_OF_TESTS := $(VENV)/.packages-of-tests
MKDOCS := target/mkdocs/bin/mkdocs
DENY := target/lock/bin/cargo-deny
ENGINE := lab/dbdyno/_engine.abi3.so
PROFILE := release
PROFILE_OF_ENGINE := target/profile-of-engine
RUST := Cargo.toml Cargo.lock $(shell find engine -name '*.rs' -o -name '*.lua' -o -name Cargo.toml)
export PATH := $(PATH):$(HOME)/.cargo/bin

# $(call locked,FILE,OF,ASKED FOR BY): writes tools/FILE.txt
define locked
	{ echo "# Every package of $(2) with its version and the digests of its files: written by \`make lock\`."; \
		target/lock/bin/uv pip compile $(3) --universal \
			--python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url --quiet; \
		} > tools/$(1).new
	mv tools/$(1).new tools/$(1).txt
endef

.PHONY: help setup demo test quick check nightly live bench arm docs site clean lock release requirements requirements-of-tests \
	packages-of-tests crates-of-tests always

help: ## print this list
	@grep -E '^[a-z]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

setup: $(ENGINE) ## what is missing, .venv, the engine
	@$(PY) -m compileall -q -j 0 lab # where Python may not write bytecode, each start would compile anew

demo: setup ## MySQL 5.7.22 against 8.0.15: a verdict and a report in about five minutes
	$(VENV)/bin/dbdyno demo

test: requirements-of-tests ## set-up, then every test; a failure hides no later one
	@$(MAKE) --no-print-directory --jobs=2 packages-of-tests crates-of-tests # pip beside cargo
	@$(MAKE) --no-print-directory setup PROFILE=ci
	@$(PY) tools/stages.py cargo quick live alone

nightly: packages-of-tests setup ## long seeds, certificate, benchmarks and containers, which make test leaves out
	@tools/requirements.sh nightly "$(PYTHON)"
	@cargo build --release --quiet --locked --workspace --examples # no test waits for it
	@DBDYNO_SEEDS=10000 DBDYNO_RUN_SEEDS=1000 $(PY) tools/stages.py cargo quick nightly

quick: requirements-of-tests packages-of-tests ## every test that needs no server
	@$(MAKE) --no-print-directory setup PROFILE=ci
	@$(PY) tools/stages.py cargo quick

check: packages-of-tests ## what every change must pass: format, lint, types, then test
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	cargo fmt --check
	cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
	$(MAKE) --no-print-directory test

live: requirements-of-tests packages-of-tests ## only the tests on real servers
	@$(MAKE) --no-print-directory setup PROFILE=ci
	@$(PY) tools/stages.py live alone

bench: requirements-of-tests packages-of-tests setup ## client CPU, its floor, many connections, loading
	$(PY) -m benchmarks.client_cpu
	$(PY) -m benchmarks.floor
	$(PY) -m benchmarks.connections
	$(PY) -m benchmarks.prepare

# Needs Debian's gcc-aarch64-linux-gnu, qemu-user and libc6:arm64, and Rust's library for ARM64.
arm: ## the engine's tests as ARM64 programs, in an emulator, which keeps no times
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 \
	cargo test --profile ci --quiet --locked --target aarch64-unknown-linux-gnu \
		-p dbdyno-wire -p dbdyno-core --tests -- --skip yardstick --skip a_round_trip_takes

docs: packages-of-tests setup ## check that the docs name what exists
	$(PY) -m pytest -q tests/test_docs.py

site: setup $(MKDOCS) ## the docs as pages with search, and the help of all commands, in target/site
	@$(PY) tools/site/pages.py target/site-pages
	@NO_MKDOCS_2_WARNING=1 $(MKDOCS) build --strict --config-file target/site-pages/mkdocs.yml
	@! grep -rE '<(script|link|img|iframe)[^>]* (src|href)="?https?:' --include='*.html' target/site # it is read without a network
	@echo "open target/site/index.html in a browser"

clean: ## remove what was built; measurements in dbdyno-runs stay
	rm -rf $(VENV) target $(ENGINE) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find lab tests benchmarks validation -name __pycache__ -type d -prune -exec rm -rf {} +

lock: ## choose the newest packages that pyproject.toml allows, and note their digests
	test -x target/lock/bin/uv || $(PYTHON) -m venv target/lock
	target/lock/bin/pip install --quiet --disable-pip-version-check uv
	$(call locked,requirements-of-tests,the tests,pyproject.toml --extra dev)
	$(call locked,requirements,set-up,pyproject.toml --extra build --extra charts --constraint tools/requirements-of-tests.txt)
	$(call locked,requirements-of-site,the site,--group site)

release: setup site ## wheels, built twice and compared, source distribution, lists of parts, manual page and site, in target/release-files
	test -x $(DENY) || cargo install --quiet --locked --root target/lock cargo-deny@0.20.2
	cargo fetch --quiet --locked # cargo-deny reads the crates of all machines, a build fetches those of its own
	$(DENY) --all-features --offline check licenses bans sources
	target/lock/bin/python -c 'import cyclonedx_py, ziglang' 2>/dev/null || { $(PYTHON) -m venv target/lock && \
		target/lock/bin/pip install --quiet --disable-pip-version-check uv cyclonedx-bom ziglang==0.17.0; }
	$(PY) tools/release.py target/release-files

requirements:
	@tools/requirements.sh run "$(PYTHON)"

requirements-of-tests:
	@tools/requirements.sh test "$(PYTHON)"

packages-of-tests: $(PACKAGES_OF_TESTS)

crates-of-tests:
	@cargo test --profile ci --no-run --quiet --locked --workspace --tests

$(PACKAGES): tools/requirements.txt | requirements
	@echo "installing Python packages into $(VENV)" >&2
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(PACKAGES_OF_TESTS): tools/requirements-of-tests.txt $(PACKAGES)
	@echo "installing Python packages of the tests into $(VENV)" >&2
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(MKDOCS): tools/requirements-of-site.txt
	@echo "installing Python packages of the site into target/mkdocs" >&2
	@$(PYTHON) -m venv --clear target/mkdocs
	@target/mkdocs/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(ENGINE): $(PACKAGES) $(RUST) $(PROFILE_OF_ENGINE) | requirements
	@echo "building the engine" >&2
	@VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(VENV)/bin/maturin develop --profile $(PROFILE) --locked --quiet \
		> target/build.log 2>&1 || { cat target/build.log >&2; false; }
	@touch $@

$(PROFILE_OF_ENGINE): always # newer than the engine where that was built with another profile
	@mkdir -p target
	@echo $(PROFILE) | cmp --silent - $@ || echo $(PROFILE) > $@
