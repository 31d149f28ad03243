package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// buildCommand builds the delaytask command of this tree.
func buildCommand(ctx context.Context) (program string, remove func(), err error) {
	folder, err := os.MkdirTemp("", "attacks")
	if err != nil {
		return "", nil, err
	}
	program = filepath.Join(folder, "delaytask")
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/delaytask/delaytask")
	module, err := list.Output()
	if err != nil {
		return "", nil, fmt.Errorf("find the module: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/delaytask")
	build.Dir = strings.TrimSpace(string(module))
	if said, err := build.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("build the command: %w: %s", err, said)
	}
	return program, func() { _ = os.RemoveAll(folder) }, nil
}

// service is "delaytask serve", and what is known of it.
type service struct {
	program, folder, dsn, address string
	process                       *exec.Cmd
	save, pop, honest, admin      string // tokens
}

// start makes the tables and tokens, starts the service, and waits until it is ready.
func start(ctx context.Context, program, dsn string) (s *service, end func(), err error) {
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = ""
	}
	folder, err := os.MkdirTemp(parent, "attacks")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(folder)
		}
	}()
	s = &service{program: program, folder: folder, dsn: dsn}
	if dsn == "" {
		s.dsn = "sqlite:" + filepath.Join(folder, "tasks.db")
	} else if err := emptyDatabase(ctx, dsn); err != nil {
		return nil, nil, err
	}
	if s.address, err = freeAddress(ctx); err != nil {
		return nil, nil, err
	}
	if _, err := s.command(ctx, "migrate", "up"); err != nil {
		return nil, nil, err
	}
	for _, t := range []struct {
		token             *string
		name, tags, verbs string
	}{
		{&s.save, "saves", "weak.a", "save"}, {&s.pop, "pops", "pop.*", "work"},
		{&s.honest, "honest", "honest.*", "save,work"}, {&s.admin, "admin", "*", "all"},
	} {
		if *t.token, err = s.command(ctx, "token", "create", t.name, "--tags", t.tags, "--verbs", t.verbs); err != nil {
			return nil, nil, err
		}
	}
	s.process = exec.CommandContext(ctx, program, "serve", "--dsn", s.dsn, "--server-listen", s.address)
	s.process.Dir = folder
	s.process.Cancel = func() error { return s.process.Process.Signal(os.Interrupt) }
	s.process.WaitDelay = 15 * time.Second
	if err := s.process.Start(); err != nil {
		return nil, nil, err
	}
	end = func() {
		_ = s.process.Process.Signal(os.Interrupt)
		time.AfterFunc(15*time.Second, func() { _ = s.process.Process.Kill() })
		_ = s.process.Wait()
		_ = os.RemoveAll(folder)
	}
	for began := time.Now(); ; {
		if served, _ := call(ctx, callers("127.0.0.2", false), "GET", "http://"+s.address+"/readyz", nil); served {
			return s, end, nil
		}
		if time.Since(began) > time.Minute || !pause(ctx, 100*time.Millisecond) {
			end()
			return nil, nil, errors.New("the service is not ready")
		}
	}
}

func (s *service) command(ctx context.Context, args ...string) (string, error) {
	run := exec.CommandContext(ctx, s.program, append(args, "--dsn", s.dsn)...)
	run.Dir = s.folder
	said, err := run.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(said)), nil
}

func emptyDatabase(ctx context.Context, dsn string) error {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	name := cfg.DBName
	if !strings.HasPrefix(name, "attack") {
		return fmt.Errorf("the database %q would be dropped: give one whose name begins with attack", name)
	}
	cfg.DBName = ""
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	for _, statement := range []string{"DROP DATABASE IF EXISTS ", "CREATE DATABASE "} {
		if _, err := db.ExecContext(ctx, statement+name); err != nil {
			return err
		}
	}
	return nil
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// fill saves the tasks that are popped.
func (s *service) fill(ctx context.Context) error {
	task := fmt.Appendf(nil, `{"tag":"pop.big","body":%q}`, strings.Repeat("b", 1<<20-10))
	batch := slices.Concat([]byte("["), task, bytes.Repeat(append([]byte(","), task...), 15), []byte("]"))
	caller := callers("127.0.0.5", true)
	for range 8 {
		if served, said := call(ctx, caller, "POST", s.url("/v1/tasks/batch"), batch, asJSON(s.admin)...); !served {
			return fmt.Errorf("save tasks: %s", said)
		}
	}
	return nil
}

func (s *service) url(path string) string { return "http://" + s.address + path }

// login returns the cookie of a session.
func (s *service) login(ctx context.Context, token string) (cookie string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url("/ui/login"),
		strings.NewReader("token="+url.QueryEscape(token)))
	if err != nil {
		return "", err
	}
	setHeader(r, asForm())
	r.Header.Set("Origin", "http://"+s.address)
	answer, err := callers("127.0.0.4", false).Do(r)
	if err != nil {
		return "", err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("log in: %s", answer.Status)
	}
	cookie, _, _ = strings.Cut(answer.Header.Get("Set-Cookie"), ";")
	return cookie, nil
}

// forgetMemory lets what was resident so far not count.
func (s *service) forgetMemory() error {
	const peak = "5"
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.process.Process.Pid), []byte(peak), 0)
}

// memory returns the most that was resident since.
func (s *service) memory() (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("the service is gone: %w", err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, errors.New("the service is gone")
	}
	kib, err := strconv.Atoi(string(found[1]))
	return kib << 10, err
}
