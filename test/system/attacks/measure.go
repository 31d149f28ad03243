package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The bounds of what an attack may cost.
const (
	mostMemory = 300e6
	mostWait   = time.Second // for an answer of readyz
)

// figures are what was measured beside some attacks.
type figures struct {
	names  []string
	memory int // the most that was resident, in bytes

	ready, health, plain, save, pop, login series
}

func (f *figures) isOver() bool {
	return f.memory > mostMemory || f.ready.worst() > mostWait || f.ready.failed > 0
}

func (f *figures) String() string {
	name, bounds := strings.Join(f.names, ", "), "kept"
	if len(f.names) == len(attacks) {
		name = "all at once"
	}
	if f.isOver() {
		bounds = "**over**"
	}
	failed := fmt.Sprintf("%d of %d saves, %d of %d pops, %d of %d logins", f.save.failed, len(f.save.took),
		f.pop.failed, len(f.pop.took), f.login.failed, len(f.login.took))
	return fmt.Sprintf("| %s | %d | %v | %v | %v | %v | %v | %v | %s | %s |", name, f.memory/1e6, &f.ready, &f.health,
		&f.plain, &f.save, &f.pop, &f.login, failed, bounds)
}

// series is how long some calls took.
type series struct {
	mu     sync.Mutex
	took   []time.Duration
	failed int
}

func (s *series) add(took time.Duration, served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, took)
	if !served {
		s.failed++
	}
}

func (s *series) worst() time.Duration { return slices.Max(append(s.took, 0)) }

// String shows p99 and the worst in milliseconds, and how many failed.
func (s *series) String() string {
	if len(s.took) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(s.took))
	text := fmt.Sprintf("%d, %d", sorted[len(sorted)*99/100].Milliseconds(), s.worst().Milliseconds())
	if s.failed > 0 {
		text += fmt.Sprintf(", %d of %d failed", s.failed, len(sorted))
	}
	return text
}

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

// measure starts a service with a new database, and asks it while it is attacked.
func measure(ctx context.Context, program string, o options, names []string) (f *figures, err error) {
	s, end, err := start(ctx, program, o.dsn)
	if err != nil {
		return nil, err
	}
	defer end()
	if slices.Contains(names, "pops") {
		if err := s.fill(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.forgetMemory(); err != nil {
		return nil, err
	}
	cookie, err := s.login(ctx, s.save)
	if err != nil {
		return nil, err
	}
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	defer plain.Close()
	attacking, stop := context.WithTimeout(ctx, o.long)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	attacker := exec.CommandContext(attacking, "nice", append([]string{"-n", "10", self}, names...)...)
	attacker.Env = append(os.Environ(), "GOMAXPROCS=1",
		attackerVariable+"="+strings.Join([]string{s.address, s.save, s.pop, cookie}, "\n"))
	attacker.Stderr = os.Stderr
	if err := attacker.Start(); err != nil {
		return nil, err
	}
	f = &figures{names: names}
	s.ask(attacking, f, plain.URL)
	_ = attacker.Wait() // its end is a kill
	f.memory, err = s.memory()
	return f, err
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

// ask asks the service and a plain server each at an interval, whatever an answer takes, until the context ends.
func (s *service) ask(ctx context.Context, f *figures, plain string) {
	health, caller := callers("127.0.0.2", false), callers("127.0.0.5", true)
	var all sync.WaitGroup
	each := func(every time.Duration, in *series, do func() bool) {
		all.Go(func() {
			for pause(ctx, every) {
				all.Go(func() {
					began := time.Now()
					served := do()
					in.add(time.Since(began), served)
				})
			}
		})
	}
	get := func(url string) func() bool {
		return func() bool {
			served, _ := call(context.WithoutCancel(ctx), health, "GET", url, nil)
			return served
		}
	}
	each(200*time.Millisecond, &f.ready, get(s.url("/readyz")))
	each(200*time.Millisecond, &f.health, get(s.url("/healthz")))
	each(200*time.Millisecond, &f.plain, get(plain))
	each(50*time.Millisecond, &f.save, func() bool {
		served, _ := call(context.WithoutCancel(ctx), caller, "POST", s.url("/v1/tasks"), []byte(`{"tag":"honest.a"}`),
			asJSON(s.honest)...)
		return served
	})
	each(50*time.Millisecond, &f.pop, func() bool { return s.popAndFinish(context.WithoutCancel(ctx), caller) })
	each(time.Second, &f.login, func() bool {
		_, err := s.login(context.WithoutCancel(ctx), s.admin)
		return err == nil
	})
	all.Wait()
}

func (s *service) popAndFinish(ctx context.Context, caller *http.Client) bool {
	served, said := call(ctx, caller, "POST", s.url("/v1/tags/honest.a/pop?max=10"), nil, asJSON(s.honest)...)
	var popped struct{ Tasks []struct{ Token string } }
	if !served || len(said) == 0 {
		return served
	}
	if json.Unmarshal(said, &popped) != nil {
		return false
	}
	var done struct {
		Tokens []string `json:"tokens"`
	}
	for _, t := range popped.Tasks {
		done.Tokens = append(done.Tokens, t.Token)
	}
	if len(done.Tokens) == 0 {
		return true
	}
	body, err := json.Marshal(done)
	if err != nil {
		return false
	}
	served, _ = call(ctx, caller, "POST", s.url("/v1/tasks/finish"), body, asJSON(s.honest)...)
	return served
}

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

func callers(from string, keep bool) *http.Client {
	return &http.Client{
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: dialer(from).DialContext, DisableKeepAlives: !keep,
			MaxIdleConnsPerHost: 20},
	}
}

func setHeader(r *http.Request, header []string) {
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
}

// call reports whether the answer is of the kind 2xx, and returns its body.
func call(ctx context.Context, by *http.Client, method, url string, body []byte, header ...string) (bool, []byte) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return false, nil
	}
	setHeader(r, header)
	answer, err := by.Do(r)
	if err != nil {
		return false, nil
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode/100 == 2, said
}
