# Sallyport: `make help` lists the targets. `make check` and `make test` are all that a continuous build runs.

BIN    := $(CURDIR)/bin
OUT    := $(CURDIR)/out
GO     ?= go
PKG    ?= ./...
FUZZTIME ?= 20s
STORM  ?= 10m
RUNS   ?= 10000
KILLS  ?= 1000

# The developer tools, pinned here and nowhere else, and built into bin/: hundreds of requirements of a linter do not belong
# into the module graph of a library's users.
GOLANGCI_LINT_VERSION := v2.15.0
GOTESTSUM_VERSION     := v1.13.0

GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOTESTSUM     := $(BIN)/gotestsum-$(GOTESTSUM_VERSION)

.DEFAULT_GOAL := help
.PHONY: help build demo install install-test test test-go conformance check format lint vet archtest docs helper deps \
	generate fuzz bench storm soak kills release install-tools clean FORCE

## help: list the targets
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST) | sed 's/^\([a-z-]*\): /\1\t/' | expand -t 16

## build: write bin/sallyport
build: $(BIN)/sallyport

$(BIN)/sallyport: FORCE
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -o $@ ./cmd/sallyport

## demo: install what is missing, then import, grant and run a skill in a sandbox and show its trail
demo: install build
	@$(BIN)/sallyport demo

## install: install bubblewrap, python3 and nodejs where they are missing
install:
	@scripts/install.sh

## install-test: install what check and test need besides Go, where it is missing
install-test:
	@scripts/install.sh test

## test: install what is missing, then every test there is: units under the race detector, end to end, protocol conformance, other parties' clients
test: install-test $(GOTESTSUM) build
	@GOTESTSUM=$(GOTESTSUM) OUT=$(OUT) scripts/test.sh

## test-go: the Go tests of PKG alone, under the race detector
test-go: $(GOTESTSUM)
	$(GOTESTSUM) --format pkgname-and-test-fails -- -race -shuffle=on $(PKG)

## conformance: start the conformance server, run the official suites and print the URL and the result
conformance:
	@internal/conformance/run.sh

## check: format, lint, import rules, generated documents, the embedded helper, the list of dependencies
check: format vet lint archtest docs helper deps
	@echo "check: passed"

## format: fail where a file is not formatted (mend with: bin/golangci-lint-VERSION fmt)
format: $(GOLANGCI_LINT)
	@$(GOLANGCI_LINT) fmt --diff

## vet: go vet, and the packages that an application links also for a system without a sandbox
vet:
	@$(GO) vet ./...
	@CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) vet . ./executor/... ./gate ./run ./access ./audit ./registry ./client

## lint: golangci-lint with .golangci.yml
lint: $(GOLANGCI_LINT)
	@$(GOLANGCI_LINT) run

## archtest: the import rules and what the documents name
archtest:
	@$(GO) test ./internal/archtest

## docs: fail where a generated document is not what the code prints (mend with: make generate)
docs:
	@scripts/generate.sh --check

## helper: fail where an embedded helper, PID 1 of a sandbox or container, is not what its source builds, byte for byte
helper:
	@executor/bubblewrap/helper/build.sh --check
	@executor/container/helper/build.sh --check

## deps: fail where deps.txt is not the list of what the binary links (mend with: make generate)
deps:
	@scripts/deps.sh --check

## generate: write the generated documents, the golden files and deps.txt
generate:
	@scripts/generate.sh
	@scripts/deps.sh

## fuzz: run every fuzz target for FUZZTIME
fuzz:
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

## bench: run the benchmarks of PKG
bench:
	$(GO) test -run '^$$' -bench . -benchmem $(PKG)

## storm: attack the sandbox with many hostile runs at once for STORM, and report what a benign tenant waited
storm:
	$(GO) test -count=1 -run '^TestStorm$$' -v -timeout 24h ./executor/bubblewrap -storm $(STORM)

## soak: make RUNS runs of every kind and report processes, groups, folders, mounts, descriptors and memory before and after
soak:
	$(GO) test -count=1 -run '^TestSoak$$' -v -timeout 24h ./executor/bubblewrap -soak $(RUNS)

## kills: kill a server KILLS times at every step of a run and at any moment, and check the trail each time
kills:
	$(GO) test -count=1 -run '^TestKilledAtAnyStep$$' -v -timeout 24h ./server -kills $(KILLS)

## release: build the archives of HEAD for amd64 and arm64 and their checksums into out/release, twice, and compare
release:
	@scripts/release.sh --check

## install-tools: build the pinned developer tools into bin/
install-tools: $(GOLANGCI_LINT) $(GOTESTSUM)

$(GOLANGCI_LINT):
	@GO=$(GO) scripts/tool.sh github.com/golangci/golangci-lint/v2/cmd/golangci-lint $(GOLANGCI_LINT_VERSION) $@

$(GOTESTSUM):
	@GO=$(GO) scripts/tool.sh gotest.tools/gotestsum $(GOTESTSUM_VERSION) $@

## clean: remove bin/ and out/
clean:
	rm -rf $(BIN) $(OUT)
