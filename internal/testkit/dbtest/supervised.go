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
	"time"

	"github.com/go-sql-driver/mysql"
)

// Supervised is a server that its owner may kill and start again on the same data, port and socket. Settings of
// durability are the server's defaults. The server ends when it is closed, and when the process of its owner dies.
type Supervised struct {
	Kind       Kind
	server     *server
	supervisor *supervisor
	ready      func(context.Context) error
}

// NewSupervised starts a server of the kind: the binary of this machine, or for MySQL the one of test/servers/mysql
// when that is installed or DELAYTASK_REQUIRE_DB asks for MySQL. It uses no server that is named or runs in Docker,
// because others may use that too. The server's folder is made inside in, or among the temporary folders when in is "".
// Its environment is this process's and env. NewSupervised returns an error where there is no such server.
func NewSupervised(ctx context.Context, kind Kind, in string, env ...string) (*Supervised, error) {
	for _, b := range serverBinaries(ctx) {
		if b.kind == kind {
			return startSupervised(ctx, kind, b.supervisor, in, env)
		}
	}
	if kind != MySQL {
		return nil, fmt.Errorf("no %s is installed on this machine", kind)
	}
	script, err := mysqlScript()
	if err != nil {
		return nil, err
	}
	supervisor := func(_ context.Context, dir string, port int) (*exec.Cmd, string, error) {
		cmd := exec.Command("/bin/sh", "-c", superviseScript, "supervisor", dir, script, strconv.Itoa(port))
		return cmd, filepath.Join(dir, "mysqld.sock"), nil
	}
	return startSupervised(ctx, kind, supervisor, in, env)
}

// Create makes an empty database, which ends with the server.
func (s *Supervised) Create(ctx context.Context) (Database, error) { return s.server.lasting(ctx) }

// String names the server with its version.
func (s *Supervised) String() string { return s.server.String() }

// Close ends the server and removes its data.
func (s *Supervised) Close() error { return s.server.stop() }

// Kill sends SIGKILL and returns when the process is gone.
func (s *Supervised) Kill() error { return s.supervisor.order("crash") }

// Start starts the server after Kill and returns when it answers.
func (s *Supervised) Start(ctx context.Context) error {
	if err := s.supervisor.order("begin"); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("%w: %s", err, reason(logged(s.supervisor.log)))
	}
	return nil
}

// Freeze sends SIGSTOP: the server accepts connections and answers nothing.
func (s *Supervised) Freeze() error { return s.supervisor.order("freeze") }

// Thaw sends SIGCONT.
func (s *Supervised) Thaw() error { return s.supervisor.order("thaw") }

// Spare sends SIGKILL and moves the server's folder, with its data and log, to the path, where Close does not remove
// it. Then the server can only be closed.
func (s *Supervised) Spare(path string) error { return s.supervisor.order("spare " + path) }

const superviseScript = `
begin() { "$1" start "$2" "$dir" && server=$(cat "$dir/mysqld.pid"); }
alive() { :; }
crash() { "$1" kill "$dir"; }
` + superviseLoop

// supervise returns the command that supervises a server with its data in dir, and the server's socket.
type supervise func(ctx context.Context, dir string, port int) (supervisor *exec.Cmd, socket string, err error)

func startSupervised(ctx context.Context, kind Kind, run supervise, in string, env []string) (*Supervised, error) {
	dir, err := os.MkdirTemp(in, "delaytask-db-")
	if err != nil {
		return nil, err
	}
	s, err := startSupervisedIn(ctx, kind, run, dir, env)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func startSupervisedIn(ctx context.Context, kind Kind, run supervise, dir string, env []string) (*Supervised, error) {
	port, err := steadyPort(ctx)
	if err != nil {
		return nil, err
	}
	cmd, socket, err := run(ctx, dir, port)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), env...)
	supervisor, stop, err := startSupervisor(cmd, dir)
	if err != nil {
		return nil, err
	}
	alive := func() error { return supervisor.order("alive") }
	ready := func(ctx context.Context) error { return awaitSocket(ctx, socket, alive) }
	s := &Supervised{Kind: kind, supervisor: supervisor, ready: ready}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, stop())
	}
	// The socket is surely this server's. Another process may have taken the port meanwhile.
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if s.server, err = dial(ctx, cfg, "private server"); err != nil {
		return nil, errors.Join(err, stop())
	}
	s.server.stop = stop
	return s, nil
}

// mysqlScript returns the path of test/servers/mysql, unless it would have to install a server that was not asked for.
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

// steadyPort finds a free port below those that systems give to outgoing connections. While the server is away no other
// process must get it, least of all a client that dials it and would meet itself.
func steadyPort(ctx context.Context) (int, error) {
	var err error
	for range 100 {
		port := 20_000 + rand.IntN(10_000)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(ctx, "tcp", addr); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

// awaitSocket returns when a server answers, or with an error when it is not alive any more.
func awaitSocket(ctx context.Context, socket string, alive func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "unix", socket
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		_, err := dial(ctx, cfg, "")
		if err == nil {
			return nil
		}
		if err := alive(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-poll.C:
		}
	}
}
