# A thin front: every target is one or two commands that you can also type yourself.
BUILD  := build/release
OUT    := out
JOBS   := $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: help setup build program run test figures validate demo lint format bench scaling docs nightly gpu-check slurm-check parallel-check install clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: ## install the Debian packages that are missing (root, or sudo)
	@scripts/setup build

build: setup ## configure and build everything (Release)
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release -j $(JOBS)

# What needs the program alone does not wait for tests and benchmarks.
program: setup
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release --target kvbench -j $(JOBS)

run: program ## replay the bundled real trace with every method: a table here, all columns in out/run.csv, figures in out/report.html
	@mkdir -p $(OUT)
	$(BUILD)/kvbench replay traces/smollm2-135m.h5 --method all --budget 12.5%,25% -o $(OUT)/run.csv --summary
	@$(BUILD)/kvbench report $(OUT)/run.csv -o $(OUT)/report.html
	@echo "All columns: $(OUT)/run.csv"
	@echo "Figures: $(OUT)/report.html"

test: ## build and run all tests
	@scripts/setup build fuzz emulated
	@$(MAKE) --no-print-directory build
	@ctest --preset release --no-tests=error -j $(JOBS)

figures: program ## every published figure and table (or FIGURES="balancekv-fig2 ..."): out/figures/NAME.html with the paper's numbers beside ours
	@scripts/figures $(FIGURES)

validate: program ## test the papers' theorems and claims on the bundled trace and on built-in streams: a table here, all rows in out/validate.csv, bounds in out/validate.html
	@mkdir -p $(OUT)
	$(BUILD)/kvbench validate traces/smollm2-135m.h5 --synthetic -o $(OUT)/validate.csv --summary; status=$$?; \
	$(BUILD)/kvbench report $(OUT)/validate.csv -o $(OUT)/validate.html && echo "Bounds and verdicts: $(OUT)/validate.html"; exit $$status

demo: ## dump a real model's attention with kvdump and replay it (fetches the model and builds llama.cpp once)
	@scripts/demo

lint: setup ## check formatting and run clang-tidy on the library
	@scripts/lint

format: ## reformat all sources
	@git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs clang-format -i

bench: build ## measure the kernels beside the machine's FMA and bandwidth probes, and PyTorch where it is installed
	@scripts/bench

scaling: program ## how time and memory of every method grow with tokens, dimensions, queries and heads (an hour): out/scaling.md
	@mkdir -p $(OUT)
	bench/scaling.py --kvbench $(BUILD)/kvbench >$(OUT)/scaling.md

docs: program ## renew what the program prints: the tables in README.md, docs/methods, docs/columns.md
	@scripts/docs

nightly: setup ## the whole suite under AddressSanitizer+UBSan and under ThreadSanitizer
	@scripts/sanitize

gpu-check: ## on a machine with an NVIDIA GPU: build the CUDA backend, run its tests, sanitizer and bench
	@scripts/gpu-check

slurm-check: program ## sweeps as a Slurm job array, on a Slurm that is started for it on this machine (installs its packages)
	@scripts/slurm-check

parallel-check: program ## sweeps in shards under GNU parallel (installs its package)
	@scripts/parallel-check

install: build ## install into PREFIX (default /usr/local), below DESTDIR if that is given; the prefix may be moved later
	@cmake --install $(BUILD) --prefix $(or $(PREFIX),/usr/local)

clean: ## remove build folders and outputs
	rm -rf build $(OUT)
