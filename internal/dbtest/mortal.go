package dbtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Mortal is a server of one test's own, which the test may kill and start again on the same data, port and socket. Durability is
// left as it is by default. It is gone when the test ends, and also when the test process is killed.
type Mortal struct {
	Kind   Kind
	server *server
	keeper *obedient
	ready  func(context.Context) error
}

// NewMortal starts a server of the kind: the binary of this machine, or for MySQL the one of test/servers/mysql when that is
// installed or DELAYTASK_REQUIRE_DB asks for MySQL. Servers that are named or run in Docker belong to others as well, so they are
// not used. Where there is none the test is skipped with the reason, or fails when the kind is required.
func NewMortal(tb testing.TB, kind Kind) *Mortal {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), findTimeout)
	defer cancel()
	m, err := startMortal(ctx, kind)
	if err != nil {
		missing(tb, kind, fmt.Sprintf("one that may be killed is needed, and %v", err))
	}
	tb.Cleanup(func() {
		if err := m.server.stop(); err != nil {
			tb.Error(err)
		}
	})
	tb.Logf("tested on %s", m.server)
	return m
}

// Database creates a database, which goes away with the server.
func (m *Mortal) Database(tb testing.TB) Database {
	tb.Helper()
	db, _, err := m.server.create(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return db
}

// Kill sends SIGKILL and returns when the process is gone.
func (m *Mortal) Kill(tb testing.TB) { tb.Helper(); must(tb, m.keeper.order("crash")) }

// Start starts the server after Kill and returns when it answers.
func (m *Mortal) Start(tb testing.TB) { tb.Helper(); must(tb, m.start(tb.Context())) }

// Freeze sends SIGSTOP: the server takes connections and answers nothing.
func (m *Mortal) Freeze(tb testing.TB) { tb.Helper(); must(tb, m.keeper.order("freeze")) }

// Thaw sends SIGCONT.
func (m *Mortal) Thaw(tb testing.TB) { tb.Helper(); must(tb, m.keeper.order("thaw")) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (m *Mortal) start(ctx context.Context) error {
	if err := m.keeper.order("begin"); err != nil {
		return err
	}
	if err := m.ready(ctx); err != nil {
		return fmt.Errorf("%w: %s", err, reason(logged(m.keeper.log)))
	}
	return nil
}

// A server that was started here is waited for; its exit code tells whether it was alive until it was killed.
const obeyForBinary = `
begin() { "$@" & server=$!; }
crash() { kill -KILL $server; wait $server; [ $? = 137 ]; }
` + obey

const obeyForScript = `
begin() { "$1" start "$2" "$dir" && server=$(cat "$dir/mysqld.pid"); }
crash() { "$1" kill "$dir"; }
` + obey

func startMortal(ctx context.Context, kind Kind) (*Mortal, error) {
	dir, err := os.MkdirTemp("", "delaytask-db-")
	if err != nil {
		return nil, err
	}
	m, err := startMortalIn(ctx, kind, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return m, nil
}

func startMortalIn(ctx context.Context, kind Kind, dir string) (*Mortal, error) {
	port, err := steadyPort(ctx)
	if err != nil {
		return nil, err
	}
	cmd, socket, err := mortalCommand(ctx, kind, dir, port)
	if err != nil {
		return nil, err
	}
	m := &Mortal{Kind: kind, ready: func(ctx context.Context) error { return awaitSocket(ctx, socket) }}
	var stop func() error
	if m.keeper, stop, err = keep(cmd, dir); err != nil {
		return nil, err
	}
	if err := m.start(ctx); err != nil {
		return nil, errors.Join(err, stop())
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if m.server, err = dial(ctx, cfg, "private server of one test"); err != nil {
		return nil, errors.Join(err, stop())
	}
	m.server.stop = stop
	return m, nil
}

// mortalCommand is the keeper of a server with its data in dir, and the server's socket.
func mortalCommand(ctx context.Context, kind Kind, dir string, port int) (keeper *exec.Cmd, socket string, err error) {
	for _, b := range serverBinaries(ctx) {
		if b.kind != kind {
			continue
		}
		if err := b.initialise(ctx, dir); err != nil {
			return nil, "", err
		}
		args := append([]string{"-c", obeyForBinary, "keeper", dir}, b.serve(dir, port)...)
		return exec.Command("/bin/sh", args...), b.socket(dir), nil
	}
	if kind != MySQL {
		return nil, "", fmt.Errorf("no %s is installed on this machine", kind)
	}
	script, err := mysqlScript()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command("/bin/sh", "-c", obeyForScript, "keeper", dir, script, strconv.Itoa(port))
	return cmd, filepath.Join(dir, "mysqld.sock"), nil
}

// mysqlScript is where test/servers/mysql is, when it can start a server without installing one unasked.
func mysqlScript() (string, error) {
	const name = "test/servers/mysql"
	home := os.Getenv("DELAYTASK_MYSQL_HOME")
	if home == "" {
		home = "/var/cache/delaytask-mysql"
	}
	if _, err := os.Stat(home); err != nil && !required(MySQL) {
		return "", fmt.Errorf("no mysqld is installed on this machine, nor MySQL by %s", name)
	}
	return scriptAbove(name)
}

// scriptAbove finds a file of the repository.
func scriptAbove(name string) (string, error) {
	if os.Geteuid() != 0 {
		return "", fmt.Errorf("%s wants root", name)
	}
	dir, err := os.Getwd() // tests run in the folder of their package
	for ; err == nil; dir = filepath.Dir(dir) {
		script := filepath.Join(dir, name)
		if _, err := os.Stat(script); err == nil {
			return script, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not above the folder of the test", name)
		}
	}
	return "", err
}

// steadyPort finds a free port below those that systems give to outgoing connections: while the server is away nobody else must
// get it, least of all a client that dials it and would meet itself.
func steadyPort(ctx context.Context) (int, error) {
	var err error
	for range 100 {
		port := 20_000 + rand.IntN(10_000)
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}
