package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// server is what a system stands on, with nothing else in it.
type server struct {
	dsn     string
	version string
	stop    func() // nil where nothing was started
}

// missing says what is not installed here, so that a system is left out.
type missing string

func (m missing) Error() string { return string(m) }

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// output runs a program and returns what it printed. Its errors say what it printed on standard error.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(name), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// startMySQL starts the project's own test server, which has the defaults of its release: for a real disk.
func startMySQL(ctx context.Context, kind, dir string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	script := filepath.Join("..", "test", "servers", kind)
	dsn, err := output(ctx, script, "start", strconv.Itoa(port), dir)
	if err != nil {
		return nil, missing(err.Error())
	}
	version := map[string]string{"mariadb": "MariaDB", "mysql": "MySQL"}[kind]
	return &server{dsn: dsn, version: version, stop: func() {
		_, _ = output(context.Background(), script, "kill", dir)
	}}, nil
}

func startPostgres(ctx context.Context, dir string) (*server, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // of Debian, where it is in no PATH
	if path, lookErr := exec.LookPath("initdb"); lookErr == nil && len(found) == 0 {
		found = append(found, path)
	}
	if err != nil || len(found) == 0 {
		return nil, missing("no PostgreSQL is installed: initdb was not found")
	}
	bin, data := filepath.Dir(slices.Max(found)), filepath.Join(dir, "data")
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	credential, err := postgresUser(dir)
	if err != nil {
		return nil, err
	}
	initialize := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust")
	initialize.SysProcAttr, initialize.Dir = credential, dir
	if out, err := initialize.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	serve := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-k", dir,
		"-c", "max_connections=300")
	serve.SysProcAttr, serve.Dir = credential, dir
	stop, err := background(serve)
	if err != nil {
		return nil, err
	}
	version, _ := output(ctx, filepath.Join(bin, "postgres"), "--version")
	s := &server{
		dsn:     fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port),
		version: version, stop: stop,
	}
	return s, await(ctx, func() error {
		pool, err := pgxpool.New(ctx, s.dsn)
		if err != nil {
			return err
		}
		defer pool.Close()
		return pool.Ping(ctx)
	})
}

// postgresUser returns whom PostgreSQL runs as, for it refuses to run as root, and gives the folder to that user.
func postgresUser(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, missing("PostgreSQL does not run as root, and there is no user postgres")
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}},
		os.Chown(dir, uid, gid)
}

func startRedis(ctx context.Context, dir, fsync string) (*server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, missing("no Redis is installed: redis-server was not found")
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	stop, err := background(exec.Command(program, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", fsync))
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	version, _ := output(ctx, program, "--version")
	version, _, _ = strings.Cut(version, " sha")
	return &server{dsn: address, version: version, stop: stop}, await(ctx, func() error {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

// background starts a server. The returned function kills it, and waits for its end.
func background(cmd *exec.Cmd) (stop func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // of PostgreSQL: all its processes end at once
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(3 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	}, nil
}

func await(ctx context.Context, ready func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
