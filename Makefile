# All targets need Go and make. `test` also uses a C compiler, if there is one, for the race detector.
#
# The tools of `check` are pinned by version and run as `go run module@version`. So nothing must be installed by hand,
# every machine runs the same build, and none of their hundreds of dependencies enters go.mod.
# The first run compiles them, which takes minutes; later runs use the build cache.
GO          ?= go
GOFUMPT     := $(GO) run mvdan.cc/gofumpt@v0.12.0
# v2.15.0 contains the same gofumpt v0.12.0: upgrade both together, so that they never disagree.
GOLANGCI    := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# For the tests of one package. The slowest, those of ./cmd/remit in PLAIN, use 200 s of processor time. Beside twenty other busy
# processes on two cores they took 14 minutes. A test that hangs must not take much longer, because it delays all the others.
TIMEOUT   ?= 20m
# With coverage: the tests of PLAIN and all others of a package in one run.
COVER_TIMEOUT ?= 30m
BENCH     ?=
# For each fuzz target.
FUZZ_TIME ?= 20s
ARGS      ?=
# The folder of the server of `make postgres`.
POSTGRES  ?= /tmp/remit-postgres

# The main module, and the separate modules, whose dependencies are not dependencies of remit.
MODULES = . $(shell find . -mindepth 2 -name go.mod -not -path './.git/*' -exec dirname {} \; | sort)
# Modules that use or test remit with other libraries: durable engines, frameworks, the SDKs of providers.
ADAPTERS = $(filter ./engine/% ./examples/% ./tool/wire/%,$(MODULES))
PACKAGES = $(patsubst github.com/remit-dev/remit%,.%,$(shell $(GO) list ./...))
# Folders with a goroutine, a lock or an atomic value in some file.
SHARES = ^[[:space:]]*go (func|[a-z])|[.]Go[(]|sync[.]|atomic[.]
CONCURRENT = $(patsubst %/,%,$(sort $(dir $(shell grep -rlE --include='*.go' '$(SHARES)' .))))
# Packages of the main module whose code and tests use one goroutine, and the others: those without any of it, and some that
# mostly start processes, decide or read one thing after another, or show blocks of pages. Most of their time was the detector's:
# agentcorpus takes 19 s of processor time without it and 85 with it.
ALONE = $(PROCESS) ./ctxperm/files $(filter-out $(CONCURRENT) $(PROCESS) ./ctxperm/files,$(PACKAGES)) \
  ./cmd/remit/internal/hook ./examples/guides ./internal/arch ./internal/proof/agentcorpus ./internal/proof/mutation \
  ./internal/sandbox ./revert ./revert/record
PROCESS = ./tool/builtin/internal/process
# Tests of ./cmd/remit that start further processes of it, check the files of a program, or run commands in sequence; tests of
# ./perm/rego, ./revert/sqlite and ./console that visit many policies, states of files or pages in one goroutine; tests that kill
# processes of their own; and tests of PROCESS that run programs, or all its tests once more as another user. These take as long as ALONE and
# wait as much, so they run beside it. No other package has tests of these names.
PLAIN_IN = ./cmd/remit ./console $(PROCESS) ./perm/rego ./examples/release ./revert/sqlite ./tool/builtin/internal/web
PLAIN = ^(TestAllAsUser|TestPrograms|TestProgramsAsUser|TestCompiledRulesAgree|TestCompiledPacksAgree|TestTablesAgree|TestCacheAgreesOnEachCondition|TestCacheAgrees|TestCacheNeedsItsWholeKey|TestStepsByDefault|TestConstantsOfALoad|TestAllowingRandomPolicies|TestEveryComposition|TestFormsAgainstOPA|TestRulesMatter|TestLoadProblems|TestExplainDecidesAlike|TestReadsContent|TestDeadlineOfLongArguments|TestScripts|TestKilledRun|TestKilledLongRun|TestKilledDatabase|TestKilledWaves|TestBigFiles|TestJSONEverywhere|TestBadInputAtEveryDoor|TestSpoiledState|TestOneDamagedEntry|TestTypicalMistakes|TestAlteredApproval|TestApprovalAttacks|TestSandboxHidesRemit|TestTokensOfCommands|TestChangedHooks|TestForeignDaemon|TestFolderMadeAgain|TestChangedPolicy|TestOwnPolicyTakesEffect|TestApprovalSurvivesTheDaemon|TestApprovalAttackProcesses|TestApprovalAttacksByHiding|TestApprovalOfTheNextQuestion|TestApprovalFromTheSandbox|TestHonestApprovals|TestBelowAgent|TestAgentUndoesItsOwn|TestForgedEvents|TestForgedAfterAKill|TestExecPrograms|TestExecCodes|TestExecFolder|TestExecStreams|TestExecReaderGone|TestExecSignals|TestExecApproval|TestExecTerminal|TestNodes|TestUndoOfARunningPrompt|TestRedoAfterAKill|TestKilledCommit|TestTwoProcessesOneKilled|TestSecondProcessOnOneFile|TestKilledPrograms|TestKilledRunLeavesNoProgram|TestKilledAroundCommit|TestKilledAnywhere|TestDemo|TestAnswersNotWritten|TestPacksByName|TestPolicyNew|TestShippedPoliciesAreClean|TestPassphrase|TestDoctorProbes|TestHintsNamePlace|TestCompletion|TestPromptAnswers|TestRevisionIsOfTheContent|TestReferenceErrors|TestHostileTexts|TestTurns|TestHeadFile|TestEachDamagedPage|TestCorruption|TestKilledWhileItPrunes|TestDamagedEntriesAreNamed|TestFsckReadsTheLogBeforeSQLite|TestFsckFindsChanges|TestFsckOfWhatAKilledProcessLeft|TestKilledProcessKeepsAcknowledgedBatches)$$
# Lines that name what failed, in the output of go test: modules that are not tidy, tests, packages, and after "running tests:" those that ran at a timeout.
FAILED = ^go: updates to|^[[:space:]]*--- FAIL|^FAIL[[:space:]]|^panic: |running tests:|^[[:space:]]+(Test|Fuzz|Example)[^[:space:]]* [(][0-9.hms]+[)]$$|^WARNING: DATA RACE|^make.*WITHOUT
# Packages whose code for other systems is tested on Linux, by the build tag "portable".
# ctxperm/process has tests TestPortable, and TestOtherSystems builds the whole command so.
PORTABLE = ./internal/disk ./hooks
# The longest ones begin first, so that no processor waits for one of them at the end.
LONGEST = ./cmd/remit ./mcp/gateway
OTHERS = $(LONGEST) $(filter-out $(ALONE) $(LONGEST),$(PACKAGES))

# A developer's workspace file must not affect the build.
export GOWORK := off

.DEFAULT_GOAL := help
.PHONY: help run build postgres test tests conformance check subjects format lint vuln tidy arch cross bench bench-check undo-bench undo-bench-tools fuzz prove docs fmt cover clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Build the command and watch the quick start demo
	@sh examples/quickstart/demo.sh bin/remit

build: ## Build bin/remit, without cgo; says how far it is
	@sh .ci/build '$(GO)'

postgres: ## Start the distribution's PostgreSQL in the folder POSTGRES, to try a shared journal; prints its location and how to stop it
	@sh .ci/postgres
	@sh .ci/postgres-server $(POSTGRES)

# The race detector needs a C compiler. Building runtime/cgo with -race tests whether this machine supports it (CGO_ENABLED,
# the compiler of `go env CC`, its headers, the platform), and prints the reason if it does not.
# SQLite is C code that was translated to Go, and only one goroutine at a time uses it. The detector and its pointer checks
# would spend a third of all time on it, so it is built without them. So is the part of OPA that parses and compiles
# policies, in one goroutine; the part that evaluates them is checked.
# Separate modules (engines, examples, test data) are tested beside the second half of the main one, because both wait for much of
# their time; all run even if one fails. These are built without the detector: in ADAPTERS it would check mostly the library, and the tests of bench use one goroutine.
# One SDK alone takes up to two minutes of processor time to compile, half as much again with the detector. Their part of
# remit is already compiled without it.
# All that is built without the detector, programs that tests build too, is built without cgo, as `make build` does it. So every
# package is compiled once with the detector and once without, and programs start faster.
# Everything is compiled without data for debuggers, which takes a ninth of the time; traces need none of it. Programs that tests
# build get that by GOFLAGS too, so that each package is still compiled only once. The flags of one pattern are separated by a
# tab, because the shell splits at spaces. Without the paths of this folder in them, packages that another clone compiled are used.
# ALONE is tested without the detector, which finds nothing there. That takes a quarter to a half of the time (a program
# under the detector is slow to fork), and tests that only sample under the detector then run in full. The tests of other
# packages cover concurrent use of that code. PLAIN is tested separately for the same reason: its child processes run
# without the detector anyway, and it finds nothing in commands that run in sequence. Both wait for their child processes
# for much of their time, so they run beside each other.
# At its end each test binary waits for late reports of the detector: one second by default, and a twentieth of it here.
# One package more than processors runs at a time with the detector: the longest ones wait for processes and servers for a minute.
# A higher GOGC saves up to a fifth of the time under the detector. vet runs once.
# .ci/postgres installs PostgreSQL if it is missing, for root; otherwise its tests are skipped with a message. So does .ci/chromium.
# The last lines repeat which tests failed, and which ran when a package reached TIMEOUT: its stack traces are thousands of lines,
# and logs of CI are cut. Tests do not inherit the flags of make.
test: ## Run everything that must pass: vet, and all tests, with the race detector where it can run
	@log=$$(mktemp); trap 'rm -f "$$log" "$$log.status"' EXIT; trap 'exit 130' INT TERM; \
	{ $(MAKE) --no-print-directory -s tests 2>&1; echo $$? >"$$log.status"; } | tee "$$log"; \
	status=$$(cat "$$log.status"); [ "$$status" = 0 ] || { echo "make test: FAILED; the tests that failed or did not end:"; \
	  grep -E '$(FAILED)' "$$log"; }; exit $$status

tests:
	@sh .ci/postgres || echo "make test: WITHOUT PostgreSQL: its tests are skipped"
	@sh .ci/chromium || echo "make test: WITHOUT Chromium: its tests are skipped"
	@unset MAKEFLAGS MFLAGS MAKELEVEL; export GOFLAGS="$$GOFLAGS -trimpath -gcflags=all=-dwarf=false"; IFS=' '; alone=$$(printf '=-race=false\t-dwarf=false'); \
	race="-race -gcflags=all=-dwarf=false -gcflags=modernc.org/...$$alone -gcflags=github.com/open-policy-agent/opa/v1/ast/...$$alone"; why=$$($(GO) build -race -o /dev/null runtime/cgo 2>&1) || { race=; \
	  echo "make test: WITHOUT the race detector, which cannot run here: $$why"; }; \
	status=0; more=$$(($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)); \
	[ -z "$$race" ] || export GOGC=400 GORACE=atexit_sleep_ms=50; \
	test="test -vet=off -timeout $(TIMEOUT)"; with=$$test cgo=0; [ -z "$$race" ] || with="$$test $$race" cgo=1; \
	go_in() { echo "in $$2: $(GO) $$3"; (cd "$$2" && CGO_ENABLED=$$1 $(GO) $$3); }; \
	go_in 0 . "vet ./..." || status=1; go_in $$cgo . "$$with -p $$more -skip $(PLAIN) $(OTHERS)" || status=1; \
	export CGO_ENABLED=0; plain=$$(mktemp) modules=$$(mktemp); echo "in .: $(GO) $$test -run $(PLAIN) $(PLAIN_IN), beside $(GO) $$test -skip $(PLAIN) $(ALONE)"; \
	$(GO) $$test -run "$(PLAIN)" $(PLAIN_IN) >"$$plain" 2>&1 & first=$$!; \
	(bad=0; for mod in $(filter-out .,$(MODULES)); do [ -n "$$(find "$$mod" -name '*_test.go' | head -n 1)" ] || continue; \
	  go_in 0 "$$mod" "vet ./..." || bad=1; go_in 0 "$$mod" "$$test ./..." || bad=1; done; exit $$bad) >"$$modules" 2>&1 & second=$$!; \
	$(GO) $$test -skip "$(PLAIN)" $(ALONE) || status=1; \
	echo "in .: the code of other systems"; $(GO) $$test -tags portable $(PORTABLE) || status=1; \
	$(GO) $$test -tags portable -run ^TestPortable ./ctxperm/process || status=1; \
	wait $$first || status=1; cat "$$plain"; wait $$second || status=1; cat "$$modules"; rm -f "$$plain" "$$modules"; exit $$status

# Node.js and the suite come from npm, once, into the user's cache folder; the rest is loopback.
conformance: ## Run the protocol's own suite against MCP server and gateway; prints one table (ARGS names parts)
	CGO_ENABLED=0 $(GO) run ./mcp/conformance $(ARGS)

check: subjects format tidy arch cross lint vuln cover ## Refuse any difference: commit subjects, format, go.mod, import rules, other systems, lint, vulnerabilities, coverage
	@echo "make check: passed"

# Of the commits that are not upstream; of the last one where there is no upstream.
subjects:
	@range=$$(git rev-parse -q --verify '@{upstream}' >/dev/null 2>&1 && echo '@{upstream}..HEAD' || echo '-1'); \
	out=$$(git log --no-merges --format=%s $$range | grep -vE '^[a-z][a-z0-9/._-]*(, [a-z][a-z0-9/._-]*)*: [a-z].{0,69}[^.]$$'; \
	git log --no-merges --format=%s $$range | grep -E '^.{73}'); \
	[ -z "$$out" ] || { echo "make check: subjects must be \"package: imperative\", at most 72 characters:"; echo "$$out"; exit 1; }

format:
	@out=$$($(GOFUMPT) -l .) || exit 1; [ -z "$$out" ] || { $(GOFUMPT) -d .; \
	  echo "make check: not formatted (make fmt does it):"; echo "$$out"; exit 1; }

tidy:
	@for mod in $(MODULES); do echo "in $$mod: $(GO) mod tidy -diff"; (cd "$$mod" && $(GO) mod tidy -diff) || exit 1; done

# Also limits files to 600 lines. Uncached: `go list`, which it runs, reads more than the test cache sees.
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

# The database of vulnerabilities is on the network. If a machine cannot reach it, the other checks are still useful.
# So this target then reports that it did not scan, and continues. Every finding is a failure, and so is every other
# error. (`go run` turns the scanner's exit code, 3 for a finding, into text.)
vuln:
	@echo "$(GOVULNCHECK) ./..."; out=$$($(GOVULNCHECK) ./... 2>&1); status=$$?; printf '%s\n' "$$out"; \
	case "$$out" in \
	*"exit status 3"*) echo "make check: known vulnerabilities found"; exit 1 ;; \
	*"govulncheck: fetching vulnerabilities:"*) \
	  echo "make check: the vulnerability scan DID NOT RUN: its database cannot be reached (reason above)" ;; \
	*) exit $$status ;; \
	esac

# A separate module, so that the programs that remit is compared with stay out of go.mod.
bench: ## Check remit's promises about speed (BENCH=pattern to choose, ARGS=-json)
	cd bench && CGO_ENABLED=0 $(GO) run . -only '$(BENCH)' $(ARGS)

# A suite fails if three measurements in a row are worse than the accepted ones. After a change that is meant to be slower,
# remove the rows of its suite from bench/ratios.json, and run `make bench ARGS=-accept` a few times on a quiet machine.
bench-check: ## Fail if a ratio is worse than those of bench/ratios.json (BENCH=pattern to choose)
	cd bench && CGO_ENABLED=0 $(GO) run . -only '$(BENCH)' -check $(ARGS)

# Root is needed for the small file system of "disk full"; git and cp for the baselines.
undo-bench: ## Revert side effects with several methods, remit's among them; writes docs/evidence/undo-bench*.md and .svg (ARGS=-v)
	cd bench && CGO_ENABLED=0 $(GO) run ./undo -docs ../docs/evidence $(ARGS)

# The test skips a tool that npm cannot install. To play one tool again: ARGS='-run TestUndoBench/opencode'. The page has all results.
undo-bench-tools: ## Revert steps of real agents with the undo of real tools from npm; writes docs/evidence/undo-bench-tools.md
	@mkdir -p bin/undo-bench
	REMIT_UNDO_BENCH=$(CURDIR)/bin/undo-bench $(GO) test ./internal/proof/agentclients -count=1 -timeout 2h -v -run 'TestUndoBench' -update $(ARGS)

fuzz: ## Fuzz every decoder and pattern for FUZZ_TIME each; prints a line a target (ARGS names targets)
	$(GO) run ./internal/proof/fuzz -for $(FUZZ_TIME) $(ARGS)

prove: ## Run the crash and fault-injection tests at full size; prints one table (ARGS names parts)
	$(GO) run ./internal/proof/prove $(ARGS)

# Each page has a test that fails if the page differs from the code. With -update, the test writes the page.
docs: ## Write the generated parts of docs/reference
	$(GO) test -count=1 ./cmd/remit -run '^TestReference' -update

fmt: ## Format the code
	$(GOFUMPT) -w .

# Every test counts for every package: agent and the command test most of revert. The required coverage of each package,
# and the exceptions, are in internal/arch: cover_test.go and uncovered.txt.
cover: ## Run all tests with coverage, write coverage/cover.html, and fail if a package has too little
	@mkdir -p coverage
	$(GO) test -timeout $(COVER_TIMEOUT) -coverpkg=$$($(GO) list ./... | paste -sd , -) -coverprofile=coverage/cover.out ./...
	$(GO) tool cover -html=coverage/cover.out -o coverage/cover.html
	REMIT_COVER=$(CURDIR)/coverage/cover.out $(GO) test -count=1 -v -run 'TestCoverage$$' ./internal/arch

clean: ## Remove what was built
	rm -rf bin coverage
