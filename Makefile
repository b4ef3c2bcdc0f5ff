# Everything here needs Go and make; `test` also uses a C compiler, for the race detector, where there is one.
#
# The tools of `check` are pinned by version and run as `go run module@version`: nothing has to be installed by hand,
# everybody runs the same build of them, and none of their hundreds of dependencies enters go.mod.
# The first run compiles them, which takes minutes; later runs take them from the build cache.
GO          ?= go
GOFUMPT     := $(GO) run mvdan.cc/gofumpt@v0.12.0
# v2.15.0 holds the same gofumpt v0.12.0, so that the two never disagree: raise them together.
GOLANGCI    := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# Of one package's tests, not of all of them.
TIMEOUT   ?= 30m
BENCH     ?=
# Of each fuzz target.
FUZZ_TIME ?= 20s
ARGS      ?=

# The main module, and those of their own beside it, so that what they need is no dependency of remit.
MODULES = . $(shell find . -mindepth 2 -name go.mod -not -path './.git/*' -exec dirname {} \; | sort)
# Those that hold remit to somebody else's library: frameworks, the SDKs of providers.
ADAPTERS = $(filter ./examples/% ./tool/wire/%,$(MODULES))
# Packages of the main module whose code and tests are one goroutine's, and the others.
ALONE = ./tool/builtin/process ./ctxperm/files ./internal/sandbox ./revert ./policies ./perm ./internal/arch ./internal/proof/mutation
# Tests of ./cmd/remit that start other processes of it, look at what a program left, or run one command after another. No other package has tests of these names.
PROCESSES = ^(TestScripts|TestKilledRun|TestKilledLongRun|TestKilledDatabase|TestKilledWaves|TestBigFiles|TestJSONEverywhere|TestBadInputAtEveryDoor|TestSpoiledState|TestOneDamagedEntry|TestTypicalMistakes|TestAlteredApproval|TestApprovalAttacks)$$
# Those that take longest begin first, so that no processor waits for one of them at the end.
LONGEST = ./cmd/remit ./mcp/gateway
OTHERS = $(LONGEST) $(filter-out $(ALONE) $(LONGEST),$(patsubst github.com/remit-dev/remit%,.%,$(shell $(GO) list ./...)))

# A workspace file of the person who builds must not change what is built.
export GOWORK := off

.DEFAULT_GOAL := help
.PHONY: help run build test conformance check format lint vuln tidy arch cross bench undo-bench fuzz prove fmt cover clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Build the command and watch the quick start demo
	@sh examples/quickstart/demo.sh bin/remit

build: ## Build bin/remit, without cgo
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/remit

# The race detector needs a C compiler. Building runtime/cgo with -race asks the go command itself whether this machine
# can do it (CGO_ENABLED, the compiler of `go env CC`, its headers, the platform), and gives its reason where it cannot.
# SQLite is C in Go's clothes: the detector, and the check of pointers that comes with it, take a third of all time to look at
# what is not ours and is used from one goroutine at a time. So it is built without them, and so is the part of OPA that
# parses and compiles policies, which one goroutine does; what evaluates them is looked at.
# Modules of their own (examples, test data) are tested beside the main one; all run even when one fails.
# ADAPTERS are built without the detector: it would look at the library above all, and one SDK alone takes up to two minutes
# of a processor to compile, half as much again with the detector; what they share of remit is compiled without it already.
# ALONE is tested without the detector, which has nothing to find there: that takes a quarter to a half of the time (a program
# under the detector is slow to fork), though what is only sampled under it is looked at in full then. What others do with that
# code at once, their tests show. PROCESSES is tested apart for the same reason: what it starts is without the detector
# anyway, and of commands that follow each other it finds nothing.
# At its end each test binary waits for what a detector may still have to say, a second by default, and a twentieth of it here.
# Where garbage may gather, up to a fifth of the time under the detector is not spent on it. What vet has to say it says once.
# What PostgreSQL's tests start is installed where it is missing, for root; else they are skipped and say so.
test: ## Run everything that must pass: vet, and all tests, with the race detector where it can run
	@sh .ci/postgres || echo "make test: WITHOUT PostgreSQL: its tests are skipped"
	@race="-race -gcflags=modernc.org/...=-race=false -gcflags=github.com/open-policy-agent/opa/v1/ast/...=-race=false"; why=$$($(GO) build -race -o /dev/null runtime/cgo 2>&1) || { race=; \
	  echo "make test: WITHOUT the race detector, which cannot run here: $$why"; }; \
	status=0; \
	[ -z "$$race" ] || export GOGC=400 GORACE=atexit_sleep_ms=50; \
	for mod in $(MODULES); do \
	  [ -n "$$(find "$$mod" -name '*_test.go' | head -n 1)" ] || continue; \
	  case " $(ADAPTERS) " in *" $$mod "*) with= ;; *) with=$$race ;; esac; \
	  test="test -vet=off -timeout $(TIMEOUT)"; set -- "$$test $$with ./..."; \
	  [ "$$mod" != . ] || set -- "$$test $$with -skip $(PROCESSES) $(OTHERS)" "$$test -run $(PROCESSES) ./cmd/remit" "$$test $(ALONE)"; \
	  for cmd in "vet ./..." "$$@"; do \
	    echo "in $$mod: $(GO) $$cmd"; (cd "$$mod" && $(GO) $$cmd) || status=1; \
	  done; \
	done; exit $$status

# Node.js and the suite come from npm, once, into the cache folder of whoever runs this; the rest is loopback.
conformance: ## Hold MCP server and gateway to the protocol's own suite; prints one table (ARGS names parts)
	CGO_ENABLED=0 $(GO) run ./mcp/conformance $(ARGS)

check: format tidy arch cross lint vuln cover ## Refuse any difference: format, go.mod, import rules, other systems, lint, vulnerabilities, coverage
	@echo "make check: passed"

format:
	@out=$$($(GOFUMPT) -l .) || exit 1; [ -z "$$out" ] || { $(GOFUMPT) -d .; \
	  echo "make check: not formatted (make fmt does it):"; echo "$$out"; exit 1; }

tidy:
	@for mod in $(MODULES); do echo "in $$mod: $(GO) mod tidy -diff"; (cd "$$mod" && $(GO) mod tidy -diff) || exit 1; done

# Also what keeps files under 600 lines. Uncached: `go list`, which it runs, reads more than the test cache sees.
arch:
	$(GO) test -count=1 ./internal/arch

cross:
	@for p in $(PLATFORMS); do echo "build $$p"; \
	  GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build -o /dev/null ./... || exit 1; done
	@for mod in $(ADAPTERS); do for goos in linux darwin windows; do echo "in $$mod: build $$goos/amd64"; \
	  (cd "$$mod" && GOOS=$$goos GOARCH=amd64 CGO_ENABLED=0 $(GO) build ./...) || exit 1; done; done

lint:
	$(GOLANGCI) run ./...
	@for mod in $(ADAPTERS); do echo "in $$mod: $(GOLANGCI) run ./..."; (cd "$$mod" && $(GOLANGCI) run ./...) || exit 1; done

# The database of vulnerabilities lives on the network. A machine that cannot reach it has learnt nothing, and the other
# checks are still worth having there, so this says that it did not scan and goes on. Whatever it finds is a failure, and
# so is every other error. (`go run` turns the scanner's exit code, 3 for a finding, into text.)
vuln:
	@echo "$(GOVULNCHECK) ./..."; out=$$($(GOVULNCHECK) ./... 2>&1); status=$$?; printf '%s\n' "$$out"; \
	case "$$out" in \
	*"exit status 3"*) echo "make check: known vulnerabilities found"; exit 1 ;; \
	*"govulncheck: fetching vulnerabilities:"*) \
	  echo "make check: the vulnerability scan DID NOT RUN: its database cannot be reached (reason above)" ;; \
	*) exit $$status ;; \
	esac

# A module of its own, so that what remit is measured against stays out of go.mod.
bench: ## Hold remit against its promises of speed (BENCH=pattern to choose, ARGS=-json)
	cd bench && CGO_ENABLED=0 $(GO) run . -only '$(BENCH)' $(ARGS)

# Root is needed for the small file system of "disk full"; git and cp for the stand-ins.
undo-bench: ## Take side effects back in several ways, remit's among them; writes docs/evidence/undo-bench.md and .svg (ARGS=-v)
	cd bench && CGO_ENABLED=0 $(GO) run ./undo -docs ../docs/evidence $(ARGS)

fuzz: ## Fuzz every decoder and pattern for FUZZ_TIME each; prints a line a target (ARGS names targets)
	$(GO) run ./internal/proof/fuzz -for $(FUZZ_TIME) $(ARGS)

prove: ## Run what shows that undo survives crashes, at its full size; prints one table (ARGS names parts)
	$(GO) run ./internal/proof/prove $(ARGS)

fmt: ## Format the code
	$(GOFUMPT) -w .

# Every test counts for every package: most of what revert does is tried through agent and the command. What is wanted of
# each package, and what is excused, stands in internal/arch: cover_test.go and uncovered.txt.
cover: ## Run all tests with coverage, write coverage/cover.html, and refuse what is covered too little
	@mkdir -p coverage
	$(GO) test -timeout $(TIMEOUT) -coverpkg=$$($(GO) list ./... | paste -sd , -) -coverprofile=coverage/cover.out ./...
	$(GO) tool cover -html=coverage/cover.out -o coverage/cover.html
	REMIT_COVER=$(CURDIR)/coverage/cover.out $(GO) test -count=1 -v -run 'TestCoverage$$' ./internal/arch

clean: ## Remove what was built
	rm -rf bin coverage
