# Short names for commands: every target runs one or two commands, which also work without make.
BUILD  := build/release
OUT    := out
JOBS   := $(shell nproc)
# What ccache stores does not name the folder: `pip install .` finds it.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.DEFAULT_GOAL := help
.PHONY: help setup build program laboratory run test figures validate demo eval findings lint format bench scaling docs
.PHONY: nightly gpu-check slurm-check parallel-check release install clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: ## install missing Debian packages (as root or with sudo)
	@scripts/setup build

build: setup ## configure and build everything (Release)
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release -j $(JOBS)

# Builds only the program, for targets that need neither checks, tests nor benchmarks.
program: setup
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release --target kvbench -j $(JOBS)

# Those of a wheel or an archive run without a build: make run BIN=FOLDER
FROM = $(or $(BIN),$(BUILD))
# Methods that hold the full cache, and read a part of it per query.
RETRIEVAL := quest,clusterkv,clusterkv-repo,infinigen,oracle-topk

run: $(if $(BIN),,program) ## replay the bundled trace with every method, and print the answer at 25 % of the memory
	@mkdir -p $(OUT)
	@$(FROM)/kvbench replay traces/smollm2-135m.h5 --method $(RETRIEVAL) --budget 25%read -o $(OUT)/read.csv >/dev/null
	@$(FROM)/kvbench replay traces/smollm2-135m.h5 --method families --budget 12.5%mem,50%mem --seeds 2 \
	  --rows trace -o $(OUT)/curves.csv >/dev/null
	$(FROM)/kvbench replay traces/smollm2-135m.h5 --method all --budget 25%mem --rows head \
	  --raw $(OUT)/run.h5 -o $(OUT)/run.csv --summary
	@$(FROM)/kvbench report $(OUT)/run.csv $(OUT)/read.csv $(OUT)/curves.csv --raw $(OUT)/run.h5 \
	  --trace traces/smollm2-135m.h5 -o $(OUT)/report.html
	@echo "Figures, other budgets, and methods that read a part of the cache: $(OUT)/report.html"

test: ## build and run all tests, or those of a folder: make test T=methods
ifdef T
	@scripts/setup build python
	@cmake --preset release --log-level=WARNING >/dev/null
	@scripts/test $(T) $(BUILD)
else
	@scripts/setup build python emulated page
	@scripts/fetch-model --python
	@$(MAKE) --no-print-directory build
	@ctest --preset release --no-tests=error -j $(JOBS)
endif

figures: program ## compute all published figures and tables (or FIGURES="balancekv-fig2 ..."): out/figures/NAME.html
	@scripts/figures $(FIGURES)

# The program beside kvbench that has the checks, for targets that run them.
laboratory: program
	@cmake --build --preset release --target kvbench-validate -j $(JOBS)

validate: laboratory ## test theorems and claims of the papers on the bundled trace and on streams: out/validate.html
	@mkdir -p $(OUT)
	$(BUILD)/kvbench validate traces/smollm2-135m.h5 --synthetic -o $(OUT)/validate.csv --summary; status=$$?; \
	$(BUILD)/kvbench report $(OUT)/validate.csv -o $(OUT)/validate.html && \
	  echo "Bounds and verdicts: $(OUT)/validate.html"; exit $$status

demo: ## record a trace of a real model with kvdump and replay it (downloads the model and builds llama.cpp once)
	@scripts/demo

eval: ## run methods inside a real model (downloads it and builds llama.cpp once): out/eval.csv, out/eval.html
	@scripts/eval

findings: ## measure every method inside two models on three texts (two hours): docs/findings.md
	@scripts/findings

lint: setup ## check formatting and headers, and run clang-tidy on the library
	@scripts/lint

format: ## reformat all sources, and wrap all pages
	@git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs clang-format -i
	@git ls-files '*.md' | xargs scripts/wrap_pages.py

bench: build ## measure the kernels relative to FMA rate and bandwidth, and to PyTorch where it is installed
	@scripts/bench

scaling: program ## measure how time and memory of every method grow (one hour): out/scaling.md
	@mkdir -p $(OUT)
	bench/scaling.py --kvbench $(BUILD)/kvbench >$(OUT)/scaling.md

docs: laboratory ## regenerate what the program prints: tables in README.md, docs/methods.md, docs/columns.md
	@scripts/docs

nightly: setup ## run lint, sanitizers, make release, recipes of pages, all decoders, the long make validate
	@scripts/lint
	@scripts/release
	@scripts/sanitize
	@$(MAKE) --no-print-directory laboratory
	KVBENCH_RECIPES=$(CURDIR)/build/recipes ctest --preset release -R docs_recipes --output-on-failure
	KVBENCH_ARCHITECTURES=all ctest --preset release -R extension_architectures --output-on-failure
	KVBENCH_TORCH_PYTHON=$$(scripts/fetch-model --hf-oldest) KVBENCH_ARCHITECTURES=all \
	  ctest --preset release -R extension_architectures --output-on-failure
	KVBENCH_WHOLE=1 ctest --preset release -R 'extension_(compressed_kl|choose_real)' --output-on-failure
	KVBENCH_ORDERS=all ctest --preset release -R agreement_emulated --output-on-failure
	KVBENCH_GOLDEN=all ctest --preset release -R cli_golden --output-on-failure
	@scripts/setup fuzz
	@cmake --preset release -DKVBENCH_FUZZ=ON --log-level=WARNING >/dev/null
	@cmake --build --preset release -j $(JOBS)
	KVBENCH_FUZZ_SECONDS=300 ctest --preset release -R '^fuzz_' --output-on-failure
	KVBENCH_EVERY_LINE=1 ctest --preset release -R extension_interrupted --output-on-failure
	$(BUILD)/kvbench validate traces/smollm2-135m.h5 --synthetic --thorough -o $(OUT)/thorough.csv --summary

gpu-check: ## build and test the CUDA kernels on a machine with an NVIDIA GPU, with sanitizer and benchmarks
	@scripts/gpu-check

slurm-check: program ## test sweeps as a Slurm job array; installs Slurm and starts it on this machine
	@scripts/slurm-check

parallel-check: program ## test sweeps in shards under GNU parallel; installs its package
	@scripts/parallel-check

release: ## build and test a wheel and an archive that need no compiler: out/release
	@scripts/release

install: build ## install into PREFIX (default /usr/local), below DESTDIR if given; the prefix may be moved later
	@cmake --install $(BUILD) --prefix $(or $(PREFIX),/usr/local)

clean: ## remove build folders and outputs
	rm -rf build $(OUT)
