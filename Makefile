# SPDX-License-Identifier: MIT
# The short way to everything; `make help` lists it. CMake does the building (CMakePresets.json), tools/ the rest.
# Targets run one after the other and stop at the first failure; each step is itself parallel.
.NOTPARALLEL:
.PHONY: help setup setup-hip build examples demo test test-full test-release lint test-asan test-ubsan test-tsan test-python \
        test-fuzz test-kernels test-adversary test-builds tidy test-pip test-install test-toy-family test-torch test-gpu test-sanitize \
        bench-cpu bench-gpu bench-gpu-conv bench-models format manifest packs models clean
.PHONY: test-quick test-dist test-containers bench-all dist deb docs containers
.DEFAULT_GOAL := help

JOBS := $(shell nproc)
VENV := .venv/bin
# Expanded when a recipe runs, thus after setup, which may have installed the compiler.
CONFIGURE = CXX="$$(tools/setup --print-compiler)" cmake > /dev/null $(if $(UNITE),-DTILEWISE_UNITE=$(UNITE)) --preset
BUILD = cmake --build -j$(JOBS) --preset
CTEST = ctest -j$(JOBS) --progress --preset
# Thread sanitizer of g++ 12 does not start where addresses are randomised widely; not every container may turn it off.
NO_RANDOM = $$(setarch -R true 2>/dev/null && echo setarch -R)
# A compiler that is not there, where there are built-in kernels: what the Python tests look at needs no others.
BUILTIN_ONLY = $$([ ! -s build/builtin.pack ] || echo /nonexistent)
CXX_FILES = $$(find $(wildcard src include kernels tests benchmarks examples python) -name '*.[ch]' -o -name '*.[ch]pp')
SHELL_FILES = .ci/run tests/quick_compiler tools/setup tools/demo tools/examples tools/bench_cpu tools/test_gpu
# Files, so that a build made on another machine is used as it is.
GPU_BINARIES := build/bin/tilewise_gpu_tests build/lib/libtilewise.so
SHELL_FILES += tools/containers tools/dist tools/quick_tests
PHASE = @printf '\n=== %s ===\n'

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 18

setup: ## install what is missing to build and test (Debian, Ubuntu; root or sudo)
	@tools/setup
	@tools/commit_message --install

setup-hip: setup
	@tools/setup --hip

build: setup ## build the command line, gpu_helper and the libraries
	@$(CONFIGURE) release
	@$(BUILD) release --target tilewise tilewise_cli tilewise_manual gpu_helper dispatcher_gemm_lib dispatcher_conv_lib dispatcher_conv_bwdw_lib

examples: build ## build the C and C++ examples against an installed copy, and run them
	@tools/examples

demo: build ## show what tilewise does
	@tools/demo

test: setup-hip test-release lint test-asan test-python ## build and run the tests (minutes)
	$(PHASE) 'all tests passed'

test-quick: setup ## the quick tests of what is built (under two minutes, and the time to build what changed)
	@$(CONFIGURE) release
	@$(BUILD) release --target tilewise tilewise_cli tilewise_tests
	@tools/check_includes
	@tools/quick_tests

# The short ones first, and those that fail most.
test-full: test tidy test-install test-toy-family test-torch test-pip test-dist test-containers docs test-tsan test-ubsan test-fuzz test-adversary test-kernels ## the tests and the long checks (more than an hour)
	$(PHASE) 'all long checks passed'

test-release:
	$(PHASE) 'release: build and test'
	@$(CONFIGURE) release $(if $(ARCHS),-DTILEWISE_ARCHS='$(ARCHS)')
	@$(BUILD) release
	@$(CTEST) release

lint: ## quick checks of the sources: include order, layout, shell scripts
	$(PHASE) 'lint'
	@tools/check_includes
	@printf '%s\n' $(CXX_FILES) | xargs -P$(JOBS) -n20 $(VENV)/clang-format --dry-run -Werror
	@if command -v shellcheck >/dev/null; then shellcheck $(SHELL_FILES); else echo 'shellcheck: not here, skipped'; fi

test-asan:
	$(PHASE) 'address sanitizer: build and test'
	@$(CONFIGURE) release
	@$(BUILD) release --target tilewise_watching_tests
	@$(CONFIGURE) asan -DTILEWISE_WATCHING_TESTS=$(CURDIR)/build/lib/libtilewise_watching_tests.a
	@$(BUILD) asan
	@$(CTEST) asan

test-ubsan:
	$(PHASE) 'undefined-behaviour sanitizer: build and test'
	@$(CONFIGURE) ubsan
	@$(BUILD) ubsan
	@$(CTEST) ubsan

test-tsan:
	$(PHASE) 'thread sanitizer: build and test'
	@$(CONFIGURE) tsan
	@$(BUILD) tsan
	@$(NO_RANDOM) $(CTEST) tsan

test-python:
	$(PHASE) 'command line, Python package, documentation'
	@$(VENV)/python -m pytest -q -rs tests/capi tests/cli tests/benchmarks tests/security tests/adversary > build/test-cli.log 2>&1 & first=$$!; \
	{ TILEWISE_CXX=$(BUILTIN_ONLY) $(VENV)/python -m pytest -q -m 'not compiles' tests/python tests/original && \
	export TILEWISE_CXX=$(CURDIR)/tests/quick_compiler && \
	TILEWISE_CACHE_DIR=$(CURDIR)/build/quick-cache $(VENV)/python -m pytest -q -m compiles tests/python tests/original && \
	$(VENV)/python -m pytest -q tests/docs tests/examples; }; second=$$?; \
	wait $$first; first=$$?; cat build/test-cli.log; [ $$first = 0 ] && [ $$second = 0 ]

test-fuzz:
	$(PHASE) 'fuzzing'
	@$(CONFIGURE) fuzz
	@$(BUILD) fuzz
	@$(CTEST) fuzz

# In two processes: each compiles on every core, but runs and judges on one.
test-kernels:
	$(PHASE) 'random problems on many kernels of this CPU'
	@printf '%s\n' 0 1 | TILEWISE_TEST_CONFIGS=500 TILEWISE_TEST_PROBLEMS=200 TILEWISE_TEST_CONV_CONFIGS=300 \
		TILEWISE_TEST_CONV_PROBLEMS=150 TILEWISE_TEST_CONV_FULL_TESTS=1 TILEWISE_TEST_CORRECTIONS=10000 \
		TILEWISE_TEST_GEOMETRIES=8 GTEST_TOTAL_SHARDS=2 xargs -P2 -I{} env GTEST_SHARD_INDEX={} build/bin/tilewise_tests \
		--gtest_filter='*GemmProperty.*:*ConvProperty.*:*ConvFullTests.*:*CorrectorOn.*:*ConvGradient.*'
	$(PHASE) 'random problems on GPU kernels, emulated'
	@printf '%s\n' sm_80 sm_90a gfx90a gfx942 gfx950 | TILEWISE_TEST_RULE_SET=tiny TILEWISE_TEST_PROBLEMS=2 TILEWISE_CACHE_DIR=build/emulated-cache \
		xargs -P2 -I{} env TILEWISE_TEST_DEVICE=emulated:{} build/bin/tilewise_gpu_tests --gtest_filter='GpuGemm.*:*GpuConv.*'

# No other target does this: `full` is thousands of sources an arch. The cache remembers what is done.
test-builds: build ## compile every distinct source of the rule set full (ARCH=cpu-avx2 PART=1/8; hours)
	@TILEWISE_CACHE_DIR=build/test-builds TILEWISE_CACHE_MAX=32G \
		build/bin/tilewise build --arch $(or $(ARCH),cpu-avx2) --rule-set full $(if $(PART),--shard $(PART))

test-adversary: ## random cases on kernels of this CPU and of emulated GPUs against NumPy (minutes; CASES=10000)
	$(PHASE) 'random cases against an independent reference'
	@$(VENV)/python tests/adversary/run.py --cases $(or $(CASES),200000) --kernels 100 --gpu-kernels 80 --jobs $(JOBS)

# On the files that unite those of a folder, which takes a fraction of the time; findings in what they include count.
tidy: ## clang-tidy on src
	$(PHASE) 'clang-tidy'
	@$(CONFIGURE) tidy
	@run-clang-tidy -quiet -j $(JOBS) -p build/tidy "^$(CURDIR)/(src|build/tidy/CMakeFiles)/" > build/tidy.log 2>&1 || \
		{ cat build/tidy.log; exit 1; }

# Kernels that the release build has compiled are taken from its cache: the same compiler would make them again.
test-pip:
	$(PHASE) 'pip install into a fresh environment'
	@rm -rf build/pip-check build/pip-build
	@python3 -m venv build/pip-check
	@mkdir build/pip-build
	@if [ -d build/builtin-cache ]; then cp -r build/builtin-cache build/pip-build; fi
	@CXX="$$(tools/setup --print-compiler)" build/pip-check/bin/pip install -q --disable-pip-version-check \
		-C build-dir=build/pip-build '.[numpy]'
	@cd build/pip-check && bin/python -I ../../tests/install/import_check.py

dist: setup ## make the source distribution and the manylinux wheel in dist/ (minutes of compiling)
	@tools/setup --dist
	@tools/dist

test-dist: dist ## try the wheel in an empty environment, without a compiler on PATH
	$(PHASE) 'the wheel without a compiler'
	@$(VENV)/python tests/install/wheel_check.py dist/*.whl

docs: build ## make the site in build/site, and fail on a broken link
	@tools/setup --docs
	@$(VENV)/python -m pytest -q tests/docs/test_links.py tests/docs/test_site.py
	@NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --strict --quiet
	@echo build/site/index.html

containers: ## make the images tilewise:latest and tilewise:dev, with podman or docker
	@tools/containers

test-containers: ## try both images, where there is an engine
	@tools/containers --test

deb: build ## make the Debian package in dist/
	@mkdir -p dist
	@cd build && cpack -B $(CURDIR)/dist > cpack.log || { cat cpack.log; exit 1; }
	@rm -rf dist/_CPack_Packages
	@ls dist/*.deb

test-install:
	$(PHASE) 'install, then find_package'
	@$(CONFIGURE) release
	@$(BUILD) release
	@rm -rf build/install-check
	@cmake --install build --prefix build/install-check/prefix >/dev/null
	@cmake -G Ninja -S tests/install -B build/install-check/consumer \
	    -DCMAKE_PREFIX_PATH="$(CURDIR)/build/install-check/prefix" > /dev/null
	@cmake --build build/install-check/consumer
	@build/install-check/consumer/consumer
	@build/install-check/prefix/bin/tilewise --version
	@$(VENV)/python tests/install/files_check.py build/install-check/prefix

test-toy-family:
	$(PHASE) 'a family added in four places of a copy'
	@CXX="$$(tools/setup --print-compiler)" $(VENV)/python tests/toy_family/run.py build/toy-family

test-torch: build ## run the tests of tilewise.torch, with models (minutes; downloads torch, torchvision and transformers)
	$(PHASE) 'torch'
	@tools/setup --torch
	@TILEWISE_TORCH_CPP=0 TILEWISE_CXX=$(BUILTIN_ONLY) $(VENV)/python -m pytest -q -rs -m 'not compiles' tests/torch
	@TILEWISE_TORCH_CPP=wait $(VENV)/python -m pytest -q -rs -m compiles tests/torch
	$(PHASE) 'torch, with the C++ ops'
	@TILEWISE_TORCH_CPP=wait TILEWISE_CXX=$(BUILTIN_ONLY) $(VENV)/python -m pytest -q -rs -m 'not compiles' tests/torch

$(GPU_BINARIES):
	@tools/setup
	@$(CONFIGURE) release
	@$(BUILD) release --target tilewise tilewise_cli tilewise_gpu_tests

test-gpu: $(GPU_BINARIES) ## run kernels and Python tests on a GPU, cuda:0 or hip:0 (half an hour on 16 cores; PART=1/6 a sixth of the kernels)
	@PART=$(PART) tools/test_gpu

test-sanitize: $(GPU_BINARIES) ## run a few small kernels under compute-sanitizer, where it is installed
	@tools/test_gpu sanitize

bench-cpu: ## compare with OpenBLAS and oneDNN on one CPU thread (an hour; downloads them; ARGS='conv --quick')
	@tools/setup --bench
	@$(CONFIGURE) release -DTILEWISE_BUILD_BENCHMARKS=ON
	@$(BUILD) release --target cpu_gemm cpu_conv
	@tools/bench_cpu $(ARGS)

bench-gpu: ## compare GEMM on an NVIDIA GPU with cuBLAS, ARGS=epilogues fused steps (minutes; python3 with torch, build/lib as it is; ARGS=--help)
	@PYTHONPATH=python python3 benchmarks/gpu_gemm.py $(ARGS)

bench-gpu-conv: ## compare convolutions on an NVIDIA GPU with cuDNN (minutes; as above)
	@PYTHONPATH=python python3 benchmarks/gpu_conv.py $(ARGS)

bench-models: ## time whole models with torch and with tilewise (an hour on a GPU; python3 with torch, torchvision; ARGS='--device cpu --quick')
	@PYTHONPATH=python python3 benchmarks/models.py $(ARGS)

bench-all: ## measure this machine and write one result file (hours; ARGS='--list', ARGS='--out mine.json --parts gemm --minutes 9')
	@python3 tools/bench_all $(ARGS)

format: ## lay out all C++ files
	@$(VENV)/clang-format -i $(CXX_FILES)

packs: build ## packs of kernels for sm_90a in build/packs (an hour; LIMIT=20 to try it)
	@tools/make_packs $(if $(LIMIT),--limit $(LIMIT))

manifest: build ## write down what the rule sets expand to, after a wanted change of it: counts and digests, and names of `default`
	@build/bin/tilewise kernels --manifest > build/rule_sets.txt
	@mkdir -p tests/golden
	@mv build/rule_sets.txt tests/golden/rule_sets.txt
	@tools/kernel_names

# With the objectives and parameters of the models that are there: the same records give the same bits.
models: build ## train the models of models/ from the records in data/ (minutes; ARGS=--help)
	@$(VENV)/python -m tilewise train --data_dir data --out_dir models --parameters models --if_better $(ARGS)

clean: ## remove what was built (not .venv)
	@rm -rf build
