# The commands of the project. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help run test build bench lint format asan tsan fuzz simulate install clean

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
export JOBS

help:  ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | column -t -s @

run:  ## install what is missing, build, start weir with a stand-in upstream; Ctrl-C ends both
	@scripts/run.sh

test:  ## install what is missing, build and run every test
	@scripts/test.sh

build:  ## build/weir (Release)
	@scripts/build.sh

bench:  ## run the benchmarks; results in bench/results/
	@scripts/bench.sh

lint:  ## formatter, clang-tidy and script linters (SCOPE=changed, SCOPE=cheap for less)
	@scripts/lint.sh $(SCOPE)

format:  ## rewrite the C++ sources with clang-format
	@scripts/lint.sh format

asan:  ## unit tests and a server smoke test under AddressSanitizer and UBSan
	@scripts/sanitize.sh asan

tsan:  ## unit tests and a server smoke test under ThreadSanitizer
	@scripts/sanitize.sh tsan

fuzz:  ## run every fuzz target for FUZZ_SECONDS each (default 60)
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-60} scripts/fuzz.sh

simulate:  ## replay SEED=n of the simulated fleet, or look for a seed that breaks a bound (FROM, COUNT)
	@SEED=$(SEED) FROM=$(FROM) COUNT=$(COUNT) scripts/simulate.sh

install: build  ## install into PREFIX (/usr/local), DESTDIR honoured
	cmake --install build --prefix $(PREFIX)

clean:  ## remove build/
	rm -rf build
