package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
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
