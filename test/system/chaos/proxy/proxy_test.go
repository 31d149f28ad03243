package proxy

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestMain(m *testing.M) {
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil { // connections are lost here on purpose
		panic(err)
	}
	goleak.VerifyTestMain(dbtest.WithServers(m))
}

// through runs f on each server with a table: with a proxy, a pool that goes through it, and one that does not.
func through(t *testing.T, f func(t *testing.T, p *Proxy, db, direct *sql.DB)) {
	t.Helper()
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		p, db, direct := connect(t, d)
		f(t, p, db, direct)
	})
}

func connect(t *testing.T, d dbtest.Database) (p *Proxy, db, direct *sql.DB) {
	t.Helper()
	cfg, err := mysql.ParseDSN(d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	addr := cfg.Addr
	if p, err = New(t.Context(), "127.0.0.1:0", func() string { return addr }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	direct = open(t, cfg)
	cfg.Addr = p.Addr()
	cfg.InterpolateParams = true
	db = open(t, cfg)
	exec(t, direct, "CREATE TABLE delay_task_message"+
		" (id BIGINT PRIMARY KEY, status INT DEFAULT 0, version INT DEFAULT 0)")
	return p, db, direct
}

func open(t *testing.T, cfg *mysql.Config) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const insert = "INSERT INTO delay_task_message (id) VALUES (?)"

const (
	first  = int64(913_000_000_000_000_001)
	second = int64(913_000_000_000_000_002)
)

func TestReplyIsLostAfterTheServerHasAppliedTheStatement(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, db, direct *sql.DB) {
		exec(t, db, insert, first)
		trap := p.Set(Claim, Reply, 2)
		const claim = "UPDATE delay_task_message SET status = 3, version = version + 1 WHERE id = ?"
		exec(t, db, claim, first)
		if _, err := db.ExecContext(t.Context(), claim, first); !errors.Is(err, mysql.ErrInvalidConn) {
			t.Errorf("the second claim: %v, want a lost connection", err)
		}
		if hit := <-trap.Hits; hit.Kind != Claim || !slices.Equal(hit.IDs, []int64{first}) {
			t.Errorf("hit %+v", hit)
		}
		if version := number(t, direct, "SELECT version FROM delay_task_message"); version != 2 {
			t.Errorf("version %d; want both claims applied", version)
		}
		exec(t, db, claim, first) // the trap is gone
	})
}

func TestLostRequestIsNeverApplied(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, db, direct *sql.DB) {
		trap := p.Set(Insert, Request, 1)
		if _, err := db.ExecContext(t.Context(), insert, first); err == nil {
			t.Error("nothing was lost")
		}
		<-trap.Hits
		if n := number(t, direct, "SELECT COUNT(*) FROM delay_task_message"); n != 0 {
			t.Errorf("%d rows; want none", n)
		}
	})
}

func TestStatementThatFailsSpringsNoTrap(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, db, _ *sql.DB) {
		exec(t, db, insert, first)
		trap := p.Set(Insert, Reply, 1)
		_, err := db.ExecContext(t.Context(), insert, first)
		if refused, ok := errors.AsType[*mysql.MySQLError](err); !ok || refused.Number != 1062 {
			t.Errorf("got %v, want the server's own error", err)
		}
		if _, err := db.ExecContext(t.Context(), insert, second); err == nil {
			t.Error("the reply that says yes was not lost")
		}
		<-trap.Hits
	})
}

func TestLostCommitNamesTheTasksOfItsTransaction(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, db, direct *sql.DB) {
		trap := p.Set(Commit, Reply, 1)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), insert, second); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err == nil {
			t.Error("the reply was not lost")
		}
		if hit := <-trap.Hits; !slices.Equal(hit.IDs, []int64{second}) {
			t.Errorf("hit %+v", hit)
		}
		exec(t, direct, "UPDATE delay_task_message SET version = 1 WHERE id = ?", second)
	})
}

func TestCutNetworkIsSilentAndDeliversWhenItHeals(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, db, _ *sql.DB) {
		exec(t, db, "DO 1")
		p.Cut()
		said := make(chan error, 1)
		go func() {
			_, err := db.ExecContext(context.WithoutCancel(t.Context()), insert, first)
			said <- err
		}()
		select {
		case err := <-said:
			t.Errorf("the server answered: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		p.Heal()
		if err := <-said; err != nil {
			t.Error(err)
		}
	})
}

func TestResetCountsStatementsUnderWay(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, db, _ *sql.DB) {
		said := make(chan error, 1)
		go func() {
			_, err := db.ExecContext(t.Context(), "DO SLEEP(60)")
			said <- err
		}()
		for p.Busy() == 0 {
			select {
			case err := <-said:
				t.Fatal(err)
			case <-time.After(time.Millisecond):
			}
		}
		if all, busy := p.Reset(); all != 1 || busy != 1 {
			t.Errorf("%d connections, %d busy; want 1 and 1", all, busy)
		}
		if err := <-said; err == nil {
			t.Error("the statement survived")
		}
	})
}

func TestPacketsArriveWholeThroughABadNetwork(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, db, _ *sql.DB) {
		exec(t, db, "DO 1") // so that a connection is there before, and others are made meanwhile
		bad := []Toxic{Latency(time.Millisecond, 3*time.Millisecond), Slices(7, 10*time.Microsecond), Bandwidth(1000)}
		if err := p.Degrade(bad...); err != nil {
			t.Fatal(err)
		}
		const statement = "SELECT REPEAT('ab', 500)"
		ask := func() {
			t.Helper()
			var said string
			if err := db.QueryRowContext(t.Context(), statement).Scan(&said); err != nil || len(said) != 1000 {
				t.Errorf("%d bytes, %v", len(said), err)
			}
		}
		ask()
		db.SetMaxIdleConns(0) // which ends the connection
		ask()
		p.Recover()
		ask()
		if err := p.Degrade(bad...); err != nil {
			t.Errorf("a second time: %v", err)
		}
	})
}

func TestConnectionsBreakAmidAPacket(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, db, _ *sql.DB) {
		for range times {
			exec(t, db, "DO 1")
			if err := p.Degrade(Break(500)); err != nil {
				t.Fatal(err)
			}
			if n, err := read(t.Context(), db, nil); err == nil {
				t.Errorf("all %d rows arrived", n)
			}
			p.Recover()
		}
		exec(t, db, "DO 1")
	})
}

func TestClientMayGoAmidAReply(t *testing.T) {
	through(t, func(t *testing.T, _ *Proxy, db, _ *sql.DB) {
		for range times {
			ctx, cancel := context.WithCancel(t.Context())
			if n, err := read(ctx, db, cancel); !errors.Is(err, context.Canceled) {
				t.Errorf("%d rows, %v", n, err)
			}
		}
		exec(t, db, "DO 1")
	})
}

const times = 10 // errors here depend on the moment

// read reads many rows, more than all buffers on the way take, and calls first after the first one.
func read(ctx context.Context, db *sql.DB, first func()) (n int, err error) {
	const many = "SELECT REPEAT('ab', 5000)" +
		" FROM information_schema.collations a JOIN information_schema.collations b LIMIT 5000"
	rows, err := db.QueryContext(ctx, many)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		if n == 0 && first != nil {
			first()
		}
	}
	return n, rows.Err()
}

func TestDelayIsOfEveryPacket(t *testing.T) {
	through(t, func(t *testing.T, p *Proxy, db, _ *sql.DB) {
		exec(t, db, "DO 1")
		const least = 50 * time.Millisecond
		if err := p.Degrade(Latency(least, 2*least)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		exec(t, db, "DO 1")
		if took := time.Since(begun); took < 2*least {
			t.Errorf("a statement took %v, want a delay each way", took)
		}
	})
}

func TestKindsOfTheLibrarysStatements(t *testing.T) {
	for statement, want := range map[string]Kind{
		"COMMIT":                                     Commit,
		"START TRANSACTION":                          Other,
		"SELECT id FROM delay_task_message":          Other,
		"DELETE FROM delay_task_message":             Other,
		"UPDATE delay_task_message SET due_time = 1": Other, // a renewal
		"UPDATE delay_task_message SET status = 1, version = version + 1":              Settle,
		"UPDATE delay_task_message SET status = 3, version = version + 1, attempt = 1": Claim,
		"INSERT INTO delay_task_message (id) VALUES (1)":                               Insert,
		"INSERT INTO delay_task_node (number) VALUES (1)":                              Other,
	} {
		if got := kindOf(statement); got != want {
			t.Errorf("%s is %q, want %q", statement, got, want)
		}
	}
}
