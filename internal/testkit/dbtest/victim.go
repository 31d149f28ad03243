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

// Victim is a server that its owner may kill and start again on the same data, port and socket. Durability is left as
// it is by default. It is gone when it is closed, and also when the process of its owner is killed.
type Victim struct {
	Kind   Kind
	server *server
	keeper *obedient
	ready  func(context.Context) error
}

// NewVictim starts a server of the kind: the binary of this machine, or for MySQL the one of test/servers/mysql when
// that is installed or DELAYTASK_REQUIRE_DB asks for MySQL. Servers that are named or run in Docker belong to others as
// well, so they are not used. Its folder is made inside of the given one, or where temporary folders are when that is
// "", and it runs with the variables beside those of this process. It returns an error where there is no such server.
func NewVictim(ctx context.Context, kind Kind, in string, env ...string) (*Victim, error) {
	for _, b := range serverBinaries(ctx) {
		if b.kind == kind {
			return startVictim(ctx, kind, b.keeper, in, env)
		}
	}
	if kind != MySQL {
		return nil, fmt.Errorf("no %s is installed on this machine", kind)
	}
	script, err := mysqlScript()
	if err != nil {
		return nil, err
	}
	keeper := func(_ context.Context, dir string, port int) (*exec.Cmd, string, error) {
		cmd := exec.Command("/bin/sh", "-c", obeyForScript, "keeper", dir, script, strconv.Itoa(port))
		return cmd, filepath.Join(dir, "mysqld.sock"), nil
	}
	return startVictim(ctx, kind, keeper, in, env)
}

// Create makes an empty database, which goes away with the server.
func (v *Victim) Create(ctx context.Context) (Database, error) { return v.server.lasting(ctx) }

// String names the server with its version.
func (v *Victim) String() string { return v.server.String() }

// Close ends the server and removes its data.
func (v *Victim) Close() error { return v.server.stop() }

// Kill sends SIGKILL and returns when the process is gone.
func (v *Victim) Kill() error { return v.keeper.order("crash") }

// Start starts the server after Kill and returns when it answers.
func (v *Victim) Start(ctx context.Context) error {
	if err := v.keeper.order("begin"); err != nil {
		return err
	}
	if err := v.ready(ctx); err != nil {
		return fmt.Errorf("%w: %s", err, reason(logged(v.keeper.log)))
	}
	return nil
}

// Freeze sends SIGSTOP: the server takes connections and answers nothing.
func (v *Victim) Freeze() error { return v.keeper.order("freeze") }

// Thaw sends SIGCONT.
func (v *Victim) Thaw() error { return v.keeper.order("thaw") }

// Spare sends SIGKILL and moves the server's folder, with its data and log, to the path, where Close does not remove
// it. Then the server can only be closed.
func (v *Victim) Spare(path string) error { return v.keeper.order("spare " + path) }

// A server that was started here is waited for; its exit code tells whether it was alive until it was killed.
const obeyForBinary = `
begin() { "$@" & server=$!; }
alive() { kill -0 $server && ! grep -q '^State:.Z' /proc/$server/status; }
crash() { kill -KILL $server; wait $server; [ $? = 137 ]; }
` + obey

const obeyForScript = `
begin() { "$1" start "$2" "$dir" && server=$(cat "$dir/mysqld.pid"); }
alive() { :; }
crash() { "$1" kill "$dir"; }
` + obey

// runner is the keeper of a server with its data in dir, and the server's socket.
type runner func(ctx context.Context, dir string, port int) (keeper *exec.Cmd, socket string, err error)

func startVictim(ctx context.Context, kind Kind, run runner, in string, env []string) (*Victim, error) {
	dir, err := os.MkdirTemp(in, "delaytask-db-")
	if err != nil {
		return nil, err
	}
	v, err := startVictimIn(ctx, kind, run, dir, env)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return v, nil
}

func startVictimIn(ctx context.Context, kind Kind, run runner, dir string, env []string) (*Victim, error) {
	port, err := steadyPort(ctx)
	if err != nil {
		return nil, err
	}
	cmd, socket, err := run(ctx, dir, port)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), env...)
	keeper, stop, err := keep(cmd, dir)
	if err != nil {
		return nil, err
	}
	alive := func() error { return keeper.order("alive") }
	ready := func(ctx context.Context) error { return awaitSocket(ctx, socket, alive) }
	v := &Victim{Kind: kind, keeper: keeper, ready: ready}
	if err := v.Start(ctx); err != nil {
		return nil, errors.Join(err, stop())
	}
	// The socket is surely ours; the port could have been taken by somebody else in the meantime.
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if v.server, err = dial(ctx, cfg, "private server"); err != nil {
		return nil, errors.Join(err, stop())
	}
	v.server.stop = stop
	return v, nil
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

// steadyPort finds a free port below those that systems give to outgoing connections: while the server is away nobody
// else must get it, least of all a client that dials it and would meet itself.
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

// Mortal is a [Victim] of one test's own. It is gone when the test ends, and also when the test process is killed.
type Mortal struct{ *Victim }

// NewMortal starts a server of the kind, as [NewVictim] does. Where there is none the test is skipped with the reason,
// or fails when the kind is required.
func NewMortal(tb testing.TB, kind Kind) Mortal { tb.Helper(); return NewMortalIn(tb, kind, "") }

// NewMortalIn is [NewMortal] with the server's data inside of the given folder.
func NewMortalIn(tb testing.TB, kind Kind, in string) Mortal {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), findTimeout)
	defer cancel()
	v, err := NewVictim(ctx, kind, in)
	if err != nil {
		missing(tb, kind, fmt.Sprintf("one that may be killed is needed, and %v", err))
	}
	closeAtEnd(tb, v.Close)
	tb.Logf("tested on %s", v.server)
	return Mortal{v}
}

// Database creates a database, which goes away with the server.
func (m Mortal) Database(tb testing.TB) Database {
	tb.Helper()
	db, err := m.Create(tb.Context())
	must(tb, err)
	return db
}

// Kill is [Victim.Kill].
func (m Mortal) Kill(tb testing.TB) { tb.Helper(); must(tb, m.Victim.Kill()) }

// Start is [Victim.Start].
func (m Mortal) Start(tb testing.TB) { tb.Helper(); must(tb, m.Victim.Start(tb.Context())) }

// Freeze is [Victim.Freeze].
func (m Mortal) Freeze(tb testing.TB) { tb.Helper(); must(tb, m.Victim.Freeze()) }

// Thaw is [Victim.Thaw].
func (m Mortal) Thaw(tb testing.TB) { tb.Helper(); must(tb, m.Victim.Thaw()) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func closeAtEnd(tb testing.TB, end func() error) {
	tb.Cleanup(func() {
		if err := end(); err != nil {
			tb.Error(err)
		}
	})
}
