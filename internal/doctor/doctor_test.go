package doctor

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/migrations"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// patient is a migrated database of a test.
type patient struct {
	*testing.T
	Subject
	db   *sqlx.DB
	kind dbtest.Kind
}

func admit(t *testing.T, d dbtest.Database) *patient {
	t.Helper()
	p := connect(t, d.DSN)
	p.kind = d.Kind
	must(t, migrations.Up(t.Context(), p.DB, p.Kind))
	return p
}

func connect(t *testing.T, dsn string) *patient {
	t.Helper()
	db, kind, err := sqlstore.Connect(t.Context(), dsn)
	must(t, err)
	store := sqlstore.New(db, kind)
	t.Cleanup(func() {
		_ = store.Close(t.Context())
		_ = db.Close()
	})
	retention := map[row.Status]time.Duration{row.Completed: time.Hour}
	return &patient{T: t, db: db, Subject: Subject{
		Store: store, DB: db.DB, Kind: kind, BodyLimit: 1 << 20, Retention: retention}}
}

// ofMachine lists findings about the server of the tests, which may be set up for speed or used by others.
var ofMachine = []string{"innodb_flush_log_at_trx_commit", "sync_binlog", "doublewrite", "history", "transaction",
	"connections", "read_your_writes", "flow_control", "snapshot_isolation"}

// wants examines the database and wants exactly the codes.
func (p *patient) wants(after string, codes ...string) []Finding {
	p.Helper()
	var looked atomic.Int32
	p.Progress = func(done, total int) {
		if looked.Add(1); done > total {
			p.Errorf("%s: %d of %d checks", after, done, total)
		}
	}
	report := Examine(p.Context(), p.Subject)
	if n := int(looked.Load()); n != len(report.Checks) {
		p.Errorf("%s: %d of %d checks were told", after, n, len(report.Checks))
	}
	found := slices.DeleteFunc(report.Findings, func(f Finding) bool { return slices.Contains(ofMachine, f.Code) })
	got := []string{}
	for _, f := range found {
		got = append(got, f.Code)
		if f.Severity == OK || f.Title == "" || f.Meaning == "" || f.Fix == "" {
			p.Errorf("%s: the finding %+v lacks something", after, f)
		}
	}
	slices.Sort(got)
	if slices.Sort(codes); !slices.Equal(slices.Compact(got), codes) {
		p.Errorf("%s: found %q, want %q\n%+v", after, got, codes, found)
	}
	return found
}

func (p *patient) exec(statement string) {
	p.Helper()
	if _, err := p.db.Exec(statement); err != nil {
		p.Fatalf("%s: %v", statement, err)
	}
}

// ago is a literal of a time before now.
func (p *patient) ago(d time.Duration) string {
	p.Helper()
	reading, err := p.Store.Now(p.Context())
	must(p.T, err)
	return "'" + reading.Time.Add(-d).String() + "'"
}

// task inserts a row that is due, was finished, or whose lease ended so long ago.
func (p *patient) task(id int, tag string, status row.Status, ago time.Duration) {
	p.Helper()
	due := p.ago(ago)
	p.exec(fmt.Sprintf("INSERT INTO delay_task_message (id, tag, message_body, status, expected_time, due_time)"+
		" VALUES (%d, '%s', '', %d, %s, %s)", id, tag, status, due, due))
}

func TestFixesMendWhatIsFound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		p := admit(t, d)
		p.wants("migrate up")
		breaks := map[string]string{"DROP INDEX delay_task_message_due": "index_missing"}
		if p.Kind == sqlstore.MySQL {
			breaks = map[string]string{
				"ALTER TABLE delay_task_message DROP KEY delay_task_message_due":                  "index_missing",
				"ALTER TABLE delay_task_message DROP KEY delay_task_message_active_key":           "index_missing",
				"ALTER TABLE delay_task_worker MODIFY app VARCHAR(99) COLLATE utf8mb4_general_ci": "collation",
				"ALTER TABLE delay_task_node ENGINE=MyISAM":                                       "engine",
				"ALTER TABLE delay_task_message DROP KEY delay_task_message_active_key," +
					" ADD KEY delay_task_message_active_key (active_key)": "index_missing",
			}
			hidden := "INVISIBLE"
			if p.inspected().Server == "MariaDB" {
				hidden = "IGNORED"
			}
			breaks["ALTER TABLE delay_task_message ALTER INDEX delay_task_message_due "+hidden] = "index_missing"
		} else {
			breaks["DROP INDEX delay_task_message_due; CREATE INDEX delay_task_message_due"+
				" ON delay_task_message (due_time)"] = "index_missing"
		}
		for statement, code := range breaks {
			if p.kind == dbtest.Group && code == "engine" { // which takes no write to such a table
				continue
			}
			p.exec(statement)
			for _, f := range p.wants(statement, code) {
				if f.Severity == Critical {
					p.exec(f.Fix)
				}
			}
			p.wants(statement + ", mended")
		}
	})
}

// inspected returns the account of the test.
func (p *patient) inspected() sqlstore.Account {
	p.Helper()
	account, err := sqlstore.Inspect(p.Store).Account(p.Context())
	must(p.T, err)
	return account
}

func TestStatementsForSettingsRun(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		p := connect(t, d.DSN)
		p.account = p.inspected()
		p.exec(p.set("wait_timeout", "@@GLOBAL.wait_timeout"))
		if p.account.Server == "MySQL" {
			p.exec("RESET PERSIST IF EXISTS wait_timeout")
		}
	})
}

func TestReplicaThatCanBeWrittenToIsFound(t *testing.T) {
	t.Parallel()
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := admit(t, dbtest.NewDisposable(t, kind).Database(t))
			p.wants("it replicates nothing")
			if kind == dbtest.MariaDB {
				p.exec("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 9, MASTER_USER = 'x'")
			} else {
				p.exec("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 9, SOURCE_USER = 'x'")
			}
			p.wants("it is told of a source")
			p.exec("START REPLICA")
			if found := p.wants("it replicates", "replica"); !strings.Contains(found[0].Title, "127.0.0.1:9") {
				t.Errorf("found %+v", found)
			}
			p.exec("STOP REPLICA")
			p.wants("it is promoted")
			p.exec("START REPLICA IO_THREAD")
			p.wants("one of its threads runs, and does not reach the source", "replica")
			p.exec("STOP REPLICA")
			if kind == dbtest.MariaDB {
				return // it lets the account of the test write in any case
			}
			p.exec("SET GLOBAL super_read_only = 1")
			for _, f := range p.wants("it takes no writes", "server", "unread_privileges", "unread_plans")[1:] {
				if f.Severity != Info || !strings.Contains(f.Title, "wants a server that takes writes") {
					t.Errorf("found %+v", f)
				}
			}
		})
	}
}

func TestStatementTimeOfTheServerIsFound(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		limit := "max_execution_time=2000"
		if admit(t, d).inspected().Server == "MariaDB" {
			limit = "max_statement_time=2"
		}
		separator := "?"
		if strings.Contains(d.DSN, "?") {
			separator = "&"
		}
		found := connect(t, d.DSN+separator+limit).wants(limit, "statement_time")
		if !strings.HasSuffix(found[0].Title, " is 2s") || found[0].Severity != Warning {
			t.Errorf("found %+v", found)
		}
	})
}

func TestWithoutTheirTablesChecksAreLeftOut(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		p := connect(t, d.DSN)
		found := p.wants("nothing", "migrations", "schema")
		if len(found) != 2 {
			t.Errorf("%d findings for one command", len(found))
		}
		for _, f := range found {
			if f.Fix != "delaytask migrate up" {
				t.Errorf("%s is mended by %q", f.Code, f.Fix)
			}
		}
		must(t, migrations.Up(t.Context(), p.DB, p.Kind))
		p.exec("DROP TABLE delay_task_worker")
		p.task(1<<40, "unserved", row.Pending, time.Hour)
		for _, f := range p.wants("a table of the service is dropped", "schema", "tags_unserved") {
			if f.Code == "schema" && !strings.Contains(f.Fix, "delaytask migrate sql") {
				t.Errorf("migrations that are noted are not run again, and the fix is %q", f.Fix)
			}
		}
	})
}

func TestTasksThatDoNotMoveAreFound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		p := admit(t, d)
		p.exec("INSERT INTO delay_task_node (number, token, tags, heartbeat, version)" +
			" VALUES (1, 'a', '[\"served\"]', " + p.ago(0) + ", '1')")
		wants := func(after string, codes ...string) []Finding {
			p.exec("UPDATE delay_task_node SET heartbeat = " + p.ago(0))
			return p.wants(after, codes...)
		}
		p.task(1<<40, "served", row.Pending, 0)
		p.task(1<<40+1, "served", row.Pending, -time.Hour)
		p.task(1<<40+2, "served", row.Executing, -time.Hour)
		p.task(1<<40+3, "served", row.Completed, time.Hour)
		wants("all is well")

		p.task(1<<41, "Served", row.Pending, time.Hour)
		wants("a tag in another case", "tags_unserved")
		p.exec("INSERT INTO delay_task_tag (tag, paused) VALUES ('Served', 1)")
		for _, f := range wants("the tag is paused", "tags_paused") {
			if f.Fix != "delaytask resume Served" {
				t.Errorf("the fix is %q", f.Fix)
			}
		}
		p.exec("DELETE FROM delay_task_message WHERE tag = 'Served'")
		p.task(1<<41+1, "-x", row.Pending, time.Hour)
		p.exec("INSERT INTO delay_task_tag (tag, paused) VALUES ('-x', 1)")
		for _, f := range wants("a tag looks like a flag", "tags_paused") {
			if f.Fix != "delaytask resume -- -x" {
				t.Errorf("the fix is %q", f.Fix)
			}
		}
		p.exec("DELETE FROM delay_task_message WHERE tag = '-x'")

		p.task(1<<42, "served", row.Pending, time.Hour)
		for _, f := range wants("a served task is late", "tasks_overdue") {
			if f.Fix != fmt.Sprintf("delaytask explain %d", 1<<42) {
				t.Errorf("the fix is %q", f.Fix)
			}
		}
		if p.Kind == sqlstore.MySQL {
			tx, err := p.db.BeginTx(t.Context(), nil)
			must(t, err)
			_, err = tx.Exec(fmt.Sprintf("SELECT id FROM delay_task_message WHERE id = %d FOR UPDATE", 1<<42))
			must(t, err)
			wants("its row is locked", "tasks_locked")
			for { // the server looks anew when it was not asked for 0.1 s
				oldest, err := sqlstore.Inspect(p.Store).OldestTransaction(t.Context())
				if must(t, err); oldest.Thread != "" {
					break
				}
				p.exec("DO SLEEP(0.2)")
			}
			must(t, tx.Rollback())
		}
		p.exec(fmt.Sprintf("DELETE FROM delay_task_message WHERE id = %d", 1<<42))

		p.task(1<<43, "served", row.Executing, time.Hour)
		wants("a lease is long over", "tasks_stuck")
		p.exec(fmt.Sprintf("DELETE FROM delay_task_message WHERE id = %d", 1<<43))
		p.task(1<<44, "served", row.Completed, 2*time.Hour)
		wants("no purge", "purge_behind")
		p.exec(fmt.Sprintf("DELETE FROM delay_task_message WHERE id = %d", 1<<44))

		p.exec("UPDATE delay_task_node SET heartbeat = " + p.ago(time.Minute))
		p.wants("the process is silent", "nodes_silent")
		p.exec("UPDATE delay_task_node SET heartbeat = " + p.ago(-time.Minute))
		p.wants("the clock was set back", "clock_back")
	})
}

func TestSchedulesThatDoNotWorkAreFound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		p := admit(t, d)
		reading, err := p.Store.Now(t.Context())
		must(t, err)
		long := reading.Time.Add(-2 * time.Hour)
		for i, s := range []row.Schedule{
			{Next: long, Success: long},
			{State: row.SchedulePaused, Since: long, PauseAfter: 2, Failures: 2, Reason: "2 runs failed in a row"},
			{Next: reading.Time.Add(time.Hour), Success: long},
			{Next: reading.Time.Add(time.Hour), Success: reading.Time},
			{State: row.SchedulePaused, By: "ada", Success: long},
		} {
			s.ID, s.Name, s.Tag, s.Spec = int64(i+1), fmt.Sprint("s", i), "t", "@every 10m"
			s.Overlap, s.Missed = delaytask.OverlapSkip, delaytask.MissedOnce
			done, err := p.Store.Decide(t.Context(), []row.Decision{{Write: row.WriteNew, Schedule: s}})
			if must(t, err); !done {
				t.Fatal(s)
			}
		}
		for _, f := range p.wants("schedules", "schedules_behind", "schedules_paused", "schedules_unsuccessful") {
			of := map[string]string{"schedules_behind": "s0", "schedules_paused": "s1", "schedules_unsuccessful": "s2"}
			if !strings.HasSuffix(f.Title, ": "+of[f.Code]) || f.Fix != "delaytask schedule explain "+of[f.Code] {
				t.Errorf("found %+v", f)
			}
		}
	})
}

func TestLeasesAheadOfTheClockAreFoundAndMended(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		p := admit(t, d)
		const gone, alive = "process = 1, claim = 3", "process = 2, claim = 3"
		p.exec("INSERT INTO delay_task_node (number, token, tags, heartbeat, version)" +
			" VALUES (1, '0000000000000002', '[\"t\"]', " + p.ago(0) + ", '1')")
		for i, of := range []struct {
			executor string
			ahead    time.Duration
		}{{gone, time.Hour}, {"process = 1, claim = -3", time.Hour}, {alive, time.Hour}, {gone, time.Minute}} {
			p.task(1<<40+i, "t", row.Executing, -of.ahead)
			p.exec(fmt.Sprintf("UPDATE delay_task_message SET %s, ttr = 60000 WHERE id = %d", of.executor,
				1<<40+i))
		}
		beats := func() { p.exec("UPDATE delay_task_node SET heartbeat = " + p.ago(0)) }
		beats()
		found := p.wants("the clock was set back", "leases_ahead")
		if !strings.HasPrefix(found[0].Title, "2 tasks of processes that are gone with a lease of another 59m") {
			t.Errorf("found %+v", found)
		}
		p.exec(found[0].Fix)
		over, _, err := p.Store.Expired(t.Context(), []string{"t"}, 10)
		if must(t, err); len(over) != 2 || over[0].Version != 1 {
			t.Errorf("a rescue finds %+v", over)
		}
		beats()
		p.wants("mended")

		// Its last heartbeat is of the clock as it was.
		p.exec("UPDATE delay_task_node SET heartbeat = " + p.ago(-time.Hour))
		p.wants("its node is gone, too", "leases_ahead", "clock_back")
	})
}

func TestProcessesThatCannotBeToldAreFound(t *testing.T) {
	now := row.At(time.Now())
	node := func(number int, host, address string, unreachable ...string) row.Node {
		token := fmt.Sprintf("t%d", number)
		return row.Node{Number: number, Token: token, Host: host, Name: host, Tags: []string{"a"}, Heartbeat: now,
			Wake: row.Wake{Token: token, Address: address, Unreachable: unreachable}}
	}
	silent := node(9, "z", "10.0.0.9:7342", "t1")
	silent.Heartbeat = now.Add(-time.Minute)
	for _, c := range []struct {
		nodes []row.Node
		codes []string
	}{
		{[]row.Node{node(1, "x", "10.0.0.1:7342"), node(2, "y", "10.0.0.2:7342"), silent}, nil},
		{[]row.Node{node(1, "x", "127.0.0.1:5000"), node(2, "x", "127.0.0.1:5001"), silent}, nil},
		{[]row.Node{node(1, "x", "127.0.0.1:5000"), node(2, "y", "10.0.0.2:7342")}, []string{"wake_local"}},
		{[]row.Node{node(1, "x", "10.0.0.1:7342"), node(2, "y", "")}, []string{"wake_local"}},
		{[]row.Node{node(1, "x", "10.0.0.1:7342"), node(2, "y", "10.0.0.2:7342", "t1")}, []string{"wake_unreachable"}},
	} {
		var codes []string
		for _, f := range checkWakeUps(c.nodes, now) {
			codes = append(codes, f.Code)
		}
		if !slices.Equal(codes, c.codes) {
			t.Errorf("%+v: found %q, want %q", c.nodes, codes, c.codes)
		}
	}
}

func TestReceiversThatFailAreFound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		p := admit(t, d)
		p.Receivers = []string{"static"}
		_, err := p.Store.SaveReceiver(t.Context(), row.Receiver{
			App: "shop", Address: "http://a/b", Tags: []string{"push"}, TTL: time.Hour})
		must(t, err)
		p.task(1<<40, "push", row.Pending, -time.Minute)
		p.task(1<<40+1, "static", row.Failed, time.Minute)
		p.exec("UPDATE delay_task_message SET error_stack = 'another error'")
		p.wants("tasks fail by themselves")
		p.exec("UPDATE delay_task_message SET error_stack = 'webhook: shop.example answered 503'")
		for _, f := range p.wants("receivers answer 503", "receiver_fails") {
			if !strings.Contains(f.Title, "shop.example answered 503") {
				t.Errorf("the title is %q", f.Title)
			}
		}
		p.exec("DELETE FROM delay_task_message")
		p.exec("UPDATE delay_task_worker SET expire_time = " + p.ago(time.Minute))
		p.wants("the receiver is silent", "receivers_silent")
	})
}

func TestPrivilegesThatAreMissingAreNamed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		root := admit(t, d)
		cfg, err := mysql.ParseDSN(d.DSN)
		must(t, err)
		user := "doctor_" + strings.ToLower(cfg.DBName[max(0, len(cfg.DBName)-20):])
		root.exec("CREATE USER '" + user + "'@'%'")
		t.Cleanup(func() { root.exec("DROP USER '" + user + "'@'%'") })
		root.exec("GRANT SELECT ON `" + cfg.DBName + "`.delay_task_message TO '" + user + "'@'%'")
		cfg.User, cfg.Passwd = user, ""
		for {
			p := connect(t, cfg.FormatDSN())
			p.kind = d.Kind
			found := slices.DeleteFunc(Examine(t.Context(), p.Subject).Findings,
				func(f Finding) bool { return slices.Contains(ofMachine, f.Code) })
			if len(found) == 0 {
				return
			}
			for _, f := range found {
				switch f.Code {
				case "privileges", "unread_history", "unread_transactions", "unread_migrations":
				default:
					t.Fatalf("found %+v", f)
				}
				for statement := range strings.SplitSeq(strings.TrimSuffix(f.Fix, ";"), ";") {
					root.exec(statement)
				}
			}
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Each new connection goes to the other one of two servers that know nothing of each other.
func TestTwoDatabasesAtOneAddressAreFound(t *testing.T) {
	d := dbtest.New(t, dbtest.MariaDB)
	one, other := configOf(t, d), configOf(t, dbtest.New(t, dbtest.MySQL))
	there := connect(t, other.FormatDSN())
	there.exec("CREATE DATABASE " + one.DBName)
	defer there.exec("DROP DATABASE " + one.DBName)
	other.DBName = one.DBName
	admit(t, d)
	must(t, migrations.Up(t.Context(), connect(t, other.FormatDSN()).DB, sqlstore.MySQL))
	one.Net, one.Addr = "members", one.Addr+"|"+other.Addr
	found := connect(t, one.FormatDSN()).wants("two servers at one address", "two_databases")
	if len(found) != 1 || found[0].Severity != Critical {
		t.Errorf("found %+v", found)
	}
}

func configOf(t *testing.T, d dbtest.Database) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(d.DSN)
	must(t, err)
	return cfg
}
