# The front door of greta. CMake and Ninja do the building; `make help` lists what there is.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
SUITES  ?=
CASES_SEEDS ?= 20
FUZZ_SECONDS ?= 60

.PHONY: help run demo build tests test test-cases bench kernel-report fuzz install clean format lint setup
.DEFAULT_GOAL := build

help:
	@echo 'make run      install what is missing, build, and run the main job'
	@echo 'make demo     build, and show an audited copy, a refused one and a fault'
	@echo 'make build    build programs and libraries into $(BUILD)/: bin, lib, lib/soft'
	@echo 'make test     build and run every test; ends with "N passed, N failed"'
	@echo '              SUITES="test_base_* cli_*" runs only some'
	@echo 'make test-cases   the fault corpus of tests/cases under CASES_SEEDS ($(CASES_SEEDS)) random schedules'
	@echo 'make bench    build and run the measurements'
	@echo 'make kernel-report  registers, LDS and occupancy of every GPU kernel'
	@echo 'make fuzz     run every fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)) seconds'
	@echo 'make install  install under PREFIX ($(PREFIX)); DESTDIR stages it'
	@echo 'make format   format the sources with clang-format'
	@echo 'make lint     check format, shell scripts and clang-tidy'
	@echo 'make clean    remove what was built'

setup:
	@scripts/setup

build: setup
	@scripts/build $(BUILD)

run: build
	@scripts/run $(BUILD)

demo: build
	@$(BUILD)/bin/greta_d2h_demo

tests: setup
	@scripts/build --tests $(BUILD)

test: tests
	@tests/run $(BUILD) $(SUITES)

test-cases: tests
	@CASES_SEEDS=$(CASES_SEEDS) tests/run $(BUILD) cases

bench: setup
	@scripts/build --benches $(BUILD)
	@scripts/bench $(BUILD)

kernel-report: build
	@ninja -C $(BUILD) bench_gpu_kernels >$(BUILD)/kernel-report.log || { cat $(BUILD)/kernel-report.log; exit 1; }
	@$(BUILD)/bench/bench_gpu_kernels

fuzz: setup
	@scripts/fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

install: setup
	@scripts/build $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) >$(BUILD)/install.log || { cat $(BUILD)/install.log; exit 1; }
	@echo "Installed under $(DESTDIR)$(PREFIX); the list is in $(BUILD)/install_manifest.txt"

clean:
	@rm -rf build build-*/

format:
	@scripts/lint --format

lint: build
	@scripts/lint $(BUILD)
