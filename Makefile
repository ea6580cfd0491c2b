# The gateway's workbench. `make` lists what there is.

GO          ?= go
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT      ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
# grpcnotrace leaves out a tracing page of the gRPC library, which the gateway does not serve, and
# the HTML templates that the page needs: a third of the binary. nopgxregisterdefaulttypes leaves out
# what pgx knows of 60 types of Go and their arrays: 1.4 MB, and 1.4 MB of each function.
# store/postgres registers the one that it sends.
# otel builds the export of traces in.
TAGS        := otel grpcnotrace nopgxregisterdefaulttypes
LDFLAGS     := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.8

# Programs, tests and checks are built with the same flags, so that they share the compiled
# packages: each other set of flags compiles some 900 packages anew. The race detector needs cgo.
export CGO_ENABLED ?= 0
export GOFLAGS     += -trimpath

.DEFAULT_GOAL := help
.PHONY: help build run check generate test quick served race verify bench torture fuzz man completions functions deps words clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the gateway binary
	CGO_ENABLED=0 $(GO) build -tags '$(TAGS)' -trimpath -ldflags '$(LDFLAGS)' -o gateway ./cmd/gateway

# The four functions of AWS Lambda, each beside the configuration that is packaged with
# it: a folder, or nothing if GATEWAY_CONFIG is a URL. Only the worker delivers, so only
# it has gRPC. They need no version of their own.
FUNCTIONS       := intake pull worker cron
FUNCTION_TAGS   := lambda.norpc grpcnotrace nopgxregisterdefaulttypes
UNDELIVERING    := intake pull cron
FUNCTION_ARCH   ?= arm64
FUNCTION_CONFIG ?= infra/sam/config

functions: $(FUNCTIONS:%=dist/functions/%) ## build the four functions for AWS Lambda, dist/functions/*

.PHONY: $(FUNCTIONS:%=dist/functions/%)
$(FUNCTIONS:%=dist/functions/%):
	@mkdir -p $@
	$(MAKE) --no-print-directory function NAME=$(@F) ARTIFACTS_DIR=$@

# The targets that "sam build" makes, in a copy of this folder; see template.yaml.
.PHONY: build-IntakeFunction build-PullFunction build-WorkerFunction build-CronFunction function
build-IntakeFunction: NAME := intake
build-PullFunction: NAME := pull
build-WorkerFunction: NAME := worker
build-CronFunction: NAME := cron
build-IntakeFunction build-PullFunction build-WorkerFunction build-CronFunction function:
	@test -d '$(ARTIFACTS_DIR)' || { echo 'ARTIFACTS_DIR must name a folder; "make functions" chooses one itself' >&2; exit 2; }
	GOOS=linux GOARCH=$(FUNCTION_ARCH) CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' \
	  -tags '$(FUNCTION_TAGS)$(if $(filter $(NAME),$(UNDELIVERING)), nogrpc)' \
	  -o '$(ARTIFACTS_DIR)/bootstrap' ./functions/$(NAME)
	$(if $(FUNCTION_CONFIG),cp -R '$(FUNCTION_CONFIG)'/* '$(ARTIFACTS_DIR)')

run: build ## build, write a starter config if there is none, start on SQLite
	@test -f gateway.yaml || ./gateway init
	@printf '%s\n' '' 'The gateway starts now; stop it with Ctrl-C. In another terminal, in this folder, try:' '' \
	  "  ./gateway send --env local -s app -t order.created '{\"total\": 42}'    an event in" \
	  '  ./gateway console --env local                                          a page that shows it, in a browser' \
	  '  ./gateway inspect --env local <event id>                               its job and attempts' \
	  '  ./gateway events list --env local                                      the stored events' '' \
	  'Its delivery shows below as "echo received a delivery".' ''
	@./gateway start --env local

check: ## format, vet, staticcheck, go.mod tidy, generated code, CI workflows (the dependency rule is a test, in make test)
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	  test -z "$$unformatted" || { echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; }
	$(GO) vet -tags '$(TAGS)' ./...
	$(GO) test -tags '$(TAGS) man' -run TestManPages ./cmd/gateway
	$(GO) mod tidy -diff
	$(GO) mod verify
	$(GO) run $(STATICCHECK) -tags '$(TAGS)' ./...
	cd proto/generate && $(GO) vet . && $(GO) run . -check
	$(GO) run $(ACTIONLINT) -shellcheck= -pyflakes= .github/workflows/*.yml
	$(GO) test -run 'TestDependencyRule|TestRings|TestLibraries|TestHouse' ./core

generate: ## write the Go code of the .proto files anew
	cd proto/generate && $(GO) run .

# Without vet: make check runs it once, with more checks than go test. In continuous integration no
# result of an earlier run counts. More packages run at a time than there are processors (MANY), since
# most tests wait for timers, syncs or database servers; the packages that take longest come first
# (LONGEST), three at a time, since the servers of a fourth would take their time from them. The
# tests of whole programs have deadlines, so the stories, which take longest, have one line of other
# packages beside them (others). Together they leave some of the processors' time unused, and "make
# aside" takes it at a low priority. The functions' tests have the deadlines of functions, a few
# seconds, and many share one server of D1, which has one thread; the attacks measure latencies. So
# these two run alone.
FRESH       := $(if $(filter true,$(CI)),-count=1)
TESTED      := $(GO) test -tags '$(TAGS)' -ldflags=-w -vet=off -timeout 30m $(FRESH)
UNRACED     := modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory
RACED       := CGO_ENABLED=1 GOFLAGS='$(GOFLAGS) $(UNRACED:%=-gcflags=%=-race=false)'
RACING      := $(RACED) $(TESTED) -race -short
MANY        := -p 4 -parallel 4
# Packages that make test runs under the race detector alone, since a run without it says nothing more.
# Their tests that are skipped there, or that depend on -short or on allocations, run without the
# detector too (BOTH). TestOnce guards the lists.
ONCE        := core/(alert|config/remote|config/remote/cloud|cron|curl|egress|gateway|lines|manage|operate|pull|retention|runner|series|sns|telemetry|telemetry/metrics|telemetry/traces|web|web/lambda|worker)|core|store|store/group|store/sqlite|functions/internal/boot
BOTH        := ^Test(AdoptedOnce|BudgetsAreBounded|CountsAreBounded|CrashAtEveryPoint|Day|Delays|DelaysOverAnHour|DueWithinTheMinuteIsInTime|EventsOfManyJobs|EveryByteCounts|FactsMoveNumbers|Faults|FunctionsSeeTheRequest|HoursOnSQLite|House|InspectLargeRun|Libraries|MinuteIsTheFallback|MonthOnSQLite|MostHeldSources|Neighbours|NobodyOutsideMakesSeries|NothingIsMadeOnTheWay|OpenReadsFewMembers|Places|Plans|PreviewIsTrue|PurgeOfMuch|RateLimit|Rebinding|RepliesThatAreTooLarge|Rings|SearchScansAtMost|Shapes|SlowReaders|StepAnswers|StoreIsAwayOnce|StoreIsMeasured|Storms|Strays|TranscriptsAreAsDescribed|TranscriptsOfFunctions|UnreadRefusal|UnreadReplies|UnreadRepliesOfManyAddresses|WhatGetsIn|WorkflowsAreNotBuried|Zones)$$
BOTHIN      := ./core ./core/cron ./core/egress ./core/gateway ./core/manage ./core/retention ./core/runner ./core/sns ./core/telemetry/metrics ./core/web ./core/web/lambda ./core/worker ./functions/internal/boot ./store/sqlite
ASIDE       := $(MAKE) aside MANY="-p 2 -parallel 4"
LONGEST     := ./store/hosted ./cmd/gateway ./store/mysql ./cmd/gateway/flows ./store/... ./infra ./infra/test/servers
ATTACKS     := ^Test(Attack|Burst|LogFlood)
test: deps ## run everything: all tests, then the race detector; fuzz each target for a moment
	$(TESTED) -p 3 -parallel 4 $$($(GO) list $(LONGEST) ./... | grep -Ev '/e2e$$|/cmd/bench$$|/($(ONCE))$$')
	infra/test/beside '$(ASIDE)' $(MAKE) programs
	$(TESTED) ./functions/e2e
	$(TESTED) -run '$(ATTACKS)' ./cmd/gateway/e2e

# The tests of whole programs and of servers: the end-to-end stories, and beside them the others, one
# after the other.
.PHONY: programs stories others
programs:
	$(MAKE) -j2 stories others
stories:
	$(TESTED) -skip '$(ATTACKS)' ./cmd/gateway/e2e
others:
	$(TESTED) ./cmd/bench
	$(MAKE) race-served
	$(MAKE) race-programs

# What runs beside them: tests under the race detector that need no database server, since each
# process of PostgreSQL would get the priority of a whole session; the tests that ONCE needs without
# the detector; the modules with libraries that the gateway does not have; and the fuzz targets.
.PHONY: aside
aside:
	$(MAKE) race-packages
	$(TESTED) $(MANY) -run '$(BOTH)' $(BOTHIN)
	cd store/mysql/mysql8 && $(TESTED) ./...
	cd core/config/remote/cloud/emulators && $(TESTED) ./...
	cd core/verify/libraries && $(TESTED) ./...
	$(MAKE) fuzz FUZZTIME=1000x FUZZED='./core/... ./store/...'

# The race detector costs minutes, so it runs where goroutines share memory. Left out are:
#
# - The code of SQLite, which was C, and its C library (UNRACED). Nearly all of its memory is outside
#   of Go's heap, where the detector sees nothing, but each access cost a call: three fifths of the
#   time of a test on SQLite. The driver around it, modernc.org/sqlite, is seen. The tests that
#   build programs take the setting from GOFLAGS.
# - On database servers, checks with one caller: the code of store is the same as on SQLite, where
#   all checks run (storetest.Options.Sampled). On the model too: it has one lock, held throughout.
#   TestStoreBehindPooler and TestStoreInText are TestStore once more over another protocol.
#   TestMigrations runs on SQLite alone.
# - Tests with one caller, and many rows, large ones or many cases; tests that read files or call one
#   function again and again; and simulations of hours in which the same happens every minute, if
#   shorter ones of the package start the same goroutines (SERIAL).
# - cmd/gateway on other databases than SQLite: the tests there end in the same packages.
# - Of store/hosted all but its tests of concurrency (CLAIMS).
# - Of e2e, in which the program itself is built with the detector, all but the stories with the
#   most concurrency (RACES), and functions/e2e, whose functions are built from the same packages.
# - cmd/bench and infra, which drive and measure; TestScripts, which starts a program for each line;
#   and packages without goroutines and locks (PURE).
# - Of packages with a lock or a pool and hardly a goroutine (FEW), the tests without goroutines
#   (SHARED are the others).
#
# TestOnce guards ONCE, BOTH and PURE; TestRaced guards PURE, FEW and SHARED.
PURE        := core/(config|endpoint|intake|order|preview|units|verify|wire|workflow)
FEW         := core/(expr)
SHARED      := ^Test(PathIsShared)$$
RACES       := ^Test(Kills|Fleet|Pull|WorkflowKills|Reload.*)$$
SERIAL      := AdoptedOnce|BrokenRunsFail|BrokenStoresFail|BudgetsAreBounded|Delays|DelaysOverAnHour|EventsOfManyJobs|EveryByteCounts|EveryCommandIsShown|FactsMoveNumbers|Faults|FaultsFailWithoutAtomicBatches|FunctionsSeeTheRequest|HoursOnSQLite|House|InspectHoldsAPage|InspectLargeRun|Libraries|LinksResolve|MonthOnSQLite|MostHeldSources|Plans|PreviewIsTrue|PurgeOfMuch|RepliesThatAreTooLarge|Rings|SearchScansAtMost|Shapes|SlowReaders|StepAnswers|StoreIsMeasured|Storms|Strays|TranscriptsAreAsDescribed|TranscriptsOfFunctions|UnreadRefusal|UnreadRepliesOfManyAddresses|WhatGetsIn|WorkflowsAreNotBuried|Zones
CLAIMS      := ^Test(Claimers|Chaos|WaitingBatchesJoin|BadBatchFailsAlone)$$
.PHONY: race-packages race-programs race-served
race: race-packages race-programs race-served ## run the tests under the race detector (most end-to-end runs and D1's suite excepted)

race-packages:
	$(RACING) $(MANY) -skip '^Test($(SERIAL))$$' $$($(GO) list ./... | grep -Ev '/store/(postgres|mysql|hosted)$$|/cmd/|/functions/|/infra|/$(PURE)$$|/$(FEW)$$')
	$(RACING) -run '$(SHARED)' $$($(GO) list ./... | grep -E '/$(FEW)$$')
	GATEWAY_TEST_SERVERS=none $(RACING) $(MANY) -skip '^Test($(SERIAL)|Scripts)$$' $$($(GO) list ./cmd/gateway/... | grep -v '/e2e$$')

race-programs:
	$(RACING) -run '$(RACES)' ./cmd/gateway/e2e

# The functions' tests have deadlines of a second, so they do not run aside.
race-served:
	$(RACING) -p 3 -skip '^Test($(SERIAL)|Migrations|StoreBehindPooler|StoreInText)$$' ./store/postgres ./store/mysql ./functions/internal/...
	$(RACING) -run '$(CLAIMS)' ./store/hosted

# More packages at a time than processors, since most tests wait for timers or syncs; the first ones wait
# longest. Left out are packages whose tests need a database server or are about the tests themselves
# (SLOW), most end-to-end stories, and tests of many cases (LONG): TestScripts, which starts a program for
# each line, TestHostileConfigurations, which is about sizes, and those of SERIAL.
STORIES     := ^Test(FirstRun|Story|Kills|Hangup)$$
LONG        := ^Test(Scripts|HostileConfigurations|$(SERIAL))$$
SLOW        := /store/(postgres|mysql|hosted)$$|/e2e$$|/cmd/bench|/infra
FIRST       := ./functions/internal/boot ./store/sqlite ./core/gateway ./cmd/gateway/...
quick: ## the quick loop: pure packages and SQLite, a minute
	GATEWAY_TEST_SERVERS=none $(GO) test -tags '$(TAGS)' -ldflags=-w -vet=off -short -p 6 -parallel 6 -skip '$(LONG)' $$($(GO) list $(FIRST) ./... | grep -Ev '$(SLOW)')
	GATEWAY_TEST_SERVERS=none $(GO) test -tags '$(TAGS)' -ldflags=-w -vet=off -short -run '$(STORIES)' ./cmd/gateway/e2e

DRIVER ?= postgres
served: ## the tests on a database server of yours: DRIVER=postgres (or mysql), GATEWAY_TEST_POSTGRES_URL (or _MYSQL_URL)
	$(GO) test -tags '$(TAGS)' -count=1 -v -run '^TestVersions$$' ./infra/test/servers
	$(GO) test -tags '$(TAGS)' -count=1 -short -timeout 20m ./store/$(DRIVER) ./cmd/gateway/...

# GATEWAY_TEST_WHOLE runs each check on each database and over each protocol, with all faults and
# random sequences, and plans with a million rows. make test does that on SQLite, and bounds the
# others.
verify: deps ## the whole suites on each database; then take each guard out of each SQL statement: the tests must fail (an hour)
	GATEWAY_TEST_WHOLE=1 $(GO) test -tags '$(TAGS)' -count=1 -timeout 60m ./store/...
	GATEWAY_TEST_WHOLE=1 GATEWAY_VERIFY=1 $(GO) test -tags '$(TAGS)' -p 1 -count=1 -timeout 120m -v -run '^TestGuards$$' ./store/sqlite ./store/postgres ./store/mysql ./store/hosted

man: ## write the manual pages, man/*.1
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || date +%s) $(GO) run -tags '$(TAGS) man' -ldflags '$(LDFLAGS)' ./cmd/gateway man man
	@ls man | wc -l | xargs -I N echo 'N pages in man/; read one with: man ./man/gateway.1'

bench: deps ## measure the real binary on each database beside the reference pipeline, in a quarter of an hour
	$(GO) run ./cmd/bench $(BENCH)

# GATEWAY_TORTURE_ATTACKS is how long the attack of everything at once lasts. Each other
# attack lasts half as long. Without it, as in make test, each attack lasts a moment.
KILLS  ?= 1000
ATTACK ?= 60s
LEDGER ?= 300
# Not LINES: a shell may export the height of its terminal under that name.
LINED  ?= 200000
# GATEWAY_TEST_WHOLE has some stories last two to five times as long as in make test.
torture: ## kill -9 under load, KILLS times (1000), attacks of ATTACK (60s), LEDGER failing workflow runs on each database (300), LINED jobs in lines (200000)
	GATEWAY_TORTURE_KILLS=$(KILLS) $(GO) test -tags '$(TAGS)' -count=1 -timeout 60m -v -run TestKills ./cmd/gateway/e2e
	GATEWAY_TEST_WHOLE=1 $(GO) test -tags '$(TAGS)' -count=1 -timeout 60m -v -run '^Test(Fleet|Pull|PostgresRestarts|SimultaneousDuplicates|WorkflowKills|ReloadsUnderLoad)$$' ./cmd/gateway/e2e
	GATEWAY_TORTURE_ATTACKS=$(ATTACK) $(GO) test -tags '$(TAGS)' -count=1 -timeout 60m -v -run '$(ATTACKS)' ./cmd/gateway/e2e
	GATEWAY_TORTURE_LEDGER=$(LEDGER) $(GO) test -tags '$(TAGS)' -count=1 -timeout 120m -v -run '^TestLedger$$' ./cmd/gateway/flows ./functions/e2e
	GATEWAY_TORTURE_LINES=$(LINED) $(GO) test -tags '$(TAGS)' -count=1 -timeout 120m -v -run '^TestLines$$' ./cmd/gateway/e2e

# A number of runs such as 1000x ends by itself. A time, now and then, ends in
# "context deadline exceeded" and nothing else (golang/go#75804): no input failed.
# make test fuzzes ./core and ./store only: for one target of cmd the whole program is built.
FUZZTIME ?= 20s
FUZZED   ?= ./...
fuzz: ## fuzz every target for FUZZTIME (default 20s)
	@GO='$(GO)' TAGS='$(TAGS)' FUZZTIME='$(FUZZTIME)' infra/test/fuzz $(FUZZED)

deps: ## install the needs of the tests beside Go
	@infra/test/install

completions: ## write shell completion into completions/, for packages
	mkdir -p completions
	for shell in bash zsh fish; do $(GO) run -tags '$(TAGS)' ./cmd/gateway completion $$shell >completions/gateway.$$shell || exit 1; done

words: ## report how plainly comments and documents are written, per folder
	@$(GO) run ./infra/words

clean: ## remove all built files
	rm -rf gateway completions man dist
