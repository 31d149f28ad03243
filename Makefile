SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/delaytask
	go build -o bin/delaytask ./cmd/delaytask

comma := ,

# The tests name the servers they ran on in a file, because go test shows no output of packages that pass.
define tested
report=$$(mktemp); trap 'rm -f "$$report"' EXIT; DELAYTASK_TEST_REPORT=$$report $(1); sort -u "$$report"
endef

.PHONY: test
test: ## run the tests on SQLite and on every server found (see internal/testkit/dbtest)
	@$(call tested,go test ./...)

.PHONY: test-db
test-db: ## run the tests and fail unless MariaDB and MySQL are both there
	@$(call tested,DELAYTASK_REQUIRE_DB=mariadb$(comma)mysql go test ./...)

FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (10s)
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z]+' . | while IFS=: read -r file func; do \
		echo "$${func#func } in $$(dirname "$$file")"; \
		go test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")"; \
	done

SEED ?= 1
SEEDS ?= 1
STEP ?= 1
TIMES ?= 1
JSON ?= false
RECORD ?= false

.PHONY: sim
sim: ## simulate SEEDS clusters under faults from SEED on, each TIMES times; SEED=50 STEP=50 those of many nodes; JSON=true; RECORD=true records them
ifeq ($(RECORD),true)
	@go run ./test/lab seeds -seed $(SEED) -seeds $(SEEDS)
else
	@go test -c -o bin/sim.test ./internal/testkit/sim
	@bin/sim.test -test.run '^TestSeeds$$' -test.timeout 0 \
		-sim.seed $(SEED) -sim.seeds $(SEEDS) -sim.step $(STEP) -sim.times $(TIMES) -sim.json=$(JSON)
endif

.PHONY: sim-growth
sim-growth: FOR ?= 24h
sim-growth: ## simulate 100 nodes for FOR (24h, in half an hour) and 1 to 30 nodes for an hour, at 1,000,000 tasks a day
	@go test -c -o bin/sim.test ./internal/testkit/sim
	@bin/sim.test -test.run '^TestGrowth$$' -test.timeout 0 -sim.growth $(FOR)

.PHONY: sim-overload
sim-overload: ## simulate 30 and 100 nodes under 10 % to 300 % of what their database can, minutes
	@go test -c -o bin/sim.test ./internal/testkit/sim
	@bin/sim.test -test.run '^TestNoOverloadCostsThroughput$$' -test.timeout 0 -sim.overload

MODULES := . test/system bench
GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: lint
lint: ## gofmt, go mod tidy -diff and golangci-lint, which vets, in every module; make test-orm lints examples/orm
	@files=$$(gofmt -l .); echo -n "$$files"; [[ -z $$files ]]
	for module in $(MODULES); do (cd "$$module" && go mod tidy -diff && $(GOLANGCI) run ./...); done

.PHONY: check
check: lint ## lint, and run the tests on SQLite alone: wants neither root nor a server
	@n=$$((2 * $$(getconf _NPROCESSORS_ONLN))); DELAYTASK_TEST_DSN=sqlite go test -p "$$n" -parallel "$$n" ./... # most of them wait

GORELEASER := go run github.com/goreleaser/goreleaser/v2@v2.15.4

.PHONY: release-check
release-check: ## check the workflows, and build what a release publishes but for its image, into bin/release
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	@clone=$$(mktemp -d); trap 'rm -rf "$$clone"' EXIT; git clone -q . "$$clone" && cd "$$clone"; \
		git remote set-url origin https://github.com/delaytask/delaytask; \
		$(GORELEASER) check; $(GORELEASER) release --snapshot --clean --skip=docker,publish; \
		rm -rf "$(CURDIR)/bin/release"; mkdir -p "$(CURDIR)/bin"; mv dist "$(CURDIR)/bin/release"

.PHONY: release-test
release-test: release-check ## go install from a proxy, and the .deb of release-check in a Debian of its own; as root
	DELAYTASK_TEST_RELEASE=$(CURDIR)/bin/release go test -count=1 -timeout 30m -run 'Proxy|Package' ./test/door

.PHONY: generators
generators: ## lint /openapi.json by Spectral and Redocly, and let a client that oapi-codegen makes work; wants npm
	DELAYTASK_TEST_GENERATORS=1 go test -count=1 -run 'Generated|Linters' ./test/golden

# What is linked is what the linker was given, not what go.mod lists for tests.
.PHONY: peers-size
peers-size: ## what the least program with delaytask and with River links: modules, packages that are not Go's own, bytes
	@cd bench; for peer in delaytask river; do \
		CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o ../bin/size-$$peer ./peers/size/$$peer; \
		linked=$$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}' ./peers/size/$$peer); \
		echo "$$peer: $$(sort -u <<<"$$linked" | wc -l) modules, $$(wc -l <<<"$$linked") packages," \
			"$$(stat -c %s ../bin/size-$$peer) bytes"; \
	done

.PHONY: house
house: ## measure packages, circles of files, walks and lines; fail where a bound is exceeded
	go run ./test/lab house

.PHONY: rules
rules: ## check and test the alert rules; promtool is in Debian's package prometheus
	promtool check rules deploy/prometheus/delaytask.rules.yml
	promtool test rules deploy/prometheus/*.test.yml

.PHONY: dashboard
dashboard: ## run all queries of dashboard and alerts on a Prometheus that scrapes a service; wants Debian's prometheus
	DELAYTASK_REQUIRE_PROMETHEUS=1 go -C test/system test -count=1 -run OnAPrometheus ./deploy

.PHONY: fmt
fmt: ## format all Go files
	gofmt -w .

.PHONY: tidy
tidy: orm ## tidy go.mod and go.sum of all modules
	for module in $(MODULES) examples/orm; do go -C "$$module" mod tidy; done

.PHONY: bench
bench: ## run the benchmarks of single parts
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: peers
peers: ## measure River, Asynq, backlite and delaytask on one machine; as root; RECORD=true records it
	go -C bench run ./peers $(if $(filter true,$(RECORD)),-record peers/results.md) $(PEERS)

SERVER ?= mariadb

.PHONY: chaos
chaos: FOR ?= 10m
chaos: ## hurt processes and a SERVER (mariadb, mysql, galera, group, primary) for FOR (10m) by SEED, and record it
	go -C test/system run ./chaos -for $(FOR) -seed $(SEED) -server $(SERVER) -record $(CHAOS)

NEIGHBOURS ?=

.PHONY: attacks
attacks: ## measure what attacks on the service cost, eight minutes; ATTACKS='-only pops'
	go -C test/system build -o $(CURDIR)/bin/attacks ./attacks
	bin/attacks $(ATTACKS)

.PHONY: neighbours
neighbours: ## measure what tags lose while another program holds locks, an hour; NEIGHBOURS='-only cancel'; as root
	go -C test/system build -o $(CURDIR)/bin/neighbours ./neighbours
	bin/neighbours $(NEIGHBOURS)

CHECKS ?= early rescue sql-fence sql-guard

# A judge that never failed proves nothing. go run would hide the exit code, which tells a violation from a run that
# failed. The runs follow each other: on a busy machine too few tasks run for a violation.
.PHONY: chaos-controls
chaos-controls: ## take out each of CHECKS in a run of its own, and fail unless the judge of chaos notices
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	for check in $(CHECKS); do \
		go run ./test/lab overlay control-$$check "$$work" && \
			go -C test/system build -overlay "$$work/overlay.json" -o "$$work/chaos" ./chaos || exit; \
		code=0; "$$work/chaos" -for 20s -rate 60 -patience 10s -forget \
			-only 'kill worker,freeze worker,partition of a worker' >/dev/null 2>&1 || code=$$?; \
		[[ $$code == 1 ]] || { echo "without the check \"$$check\" the judge said $$code, want 1"; exit 1; }; \
		echo "without the check \"$$check\" an invariant is violated"; \
	done

.PHONY: sim-controls
sim-controls: ## take out each check in the simulation, and fail unless its judge notices
	go run ./test/lab mutate -only control-

.PHONY: ticks
ticks: ## compare the ticks of every zone and clock change of 2000 to 2037 with an oracle, by both forms of zone data
	go test ./internal/schedules/spec -run Oracle -count=1 -args -spec.full
	ZONEINFO="$$(go env GOROOT)/lib/time/zoneinfo.zip" go test ./internal/schedules/spec -run Oracle -count=1 -args -spec.full

.PHONY: test-mariadb11
test-mariadb11: ## run what talks to a database on MariaDB 11.8, which it installs; as root
	@dir=$$(mktemp -d); trap 'test/servers/mariadb 11.8 kill "$$dir"; rm -rf "$$dir"' EXIT; \
	dsn=$$(test/servers/mariadb 11.8 start 13811 "$$dir"); \
	DELAYTASK_TEST_DSN=$$dsn DELAYTASK_REQUIRE_DB=mariadb \
		go test -count=1 ./test/api ./internal/store/sqlstore ./migrations ./test/integration

.PHONY: test-clusters
test-clusters: ## hurt clusters of Galera and of group replication and their members, two minutes each; as root
	for server in galera group primary; do go -C test/system run ./chaos -for 2m -server "$$server"; done

.PHONY: mutations
mutations: ## apply each mutation to the code, and fail where no test notices
	go run ./test/lab mutate

# What ent generates is not in the repository.
.PHONY: orm
orm: ## generate the code of ent in examples/orm
	go -C examples/orm generate -run ' ent '

.PHONY: test-orm
test-orm: orm ## lint and run the transactions of docs/transactions.md with GORM, ent, bun, sqlx and sqlc
	cd examples/orm && go mod tidy -diff && $(GOLANGCI) run ./...
	@$(call tested,CGO_ENABLED=0 go -C examples/orm test -count=1 ./...)

.PHONY: browser
browser: ## run the tests of the dashboard in Chromium, and keep pictures of its pages in bin/pages; wants npm
	DELAYTASK_REQUIRE_BROWSER=1 DELAYTASK_TEST_SCREENSHOTS=$(CURDIR)/bin/pages go -C test/system test -count=1 -parallel 4 ./browser

.PHONY: pictures
pictures: ## take pictures of the dashboard for the README; wants Debian's chromium
	DELAYTASK_TEST_PICTURES=$(CURDIR)/docs/images go -C test/system test -count=1 -run '^TestTheReadmesPicturesAreTaken$$' ./browser

.PHONY: clone
clone: ## run the two commands of the README in a clean clone
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; git clone --quiet . "$$dir"; cd "$$dir"; \
	for command in 'go run ./cmd/delaytask demo' 'go test ./...'; do grep -Fx "$$command" README.md; $$command; done

# The DSN goes by environment and not by flag: lists of processes show flags, and with them the password.
.PHONY: migrate-up
migrate-up: ## bring the schema of DELAYTASK_DSN up to date
	DELAYTASK_DSN="$${DELAYTASK_DSN:-root@tcp(127.0.0.1:3306)/delaytask}" go run ./cmd/delaytask migrate up

.PHONY: up
up: ## start MySQL and the service in Docker, and wait until both are healthy
	docker compose up --detach --wait --build

.PHONY: up-db
up-db: ## start MySQL alone
	docker compose up --detach --wait mysql

.PHONY: down
down: ## stop it and remove its data
	docker compose down --volumes

.PHONY: full
full: ## verify, and every night: MariaDB 11.8, clusters, controls, mutations, fuzzing, seeds …: hours
	.ci/run full

.PHONY: verify
verify: ## all that a change must pass; installs the servers it needs, so it wants root on Debian
	.ci/run
