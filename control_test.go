package delaytask

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

func (f fixture) save(t *testing.T, tag string, delay time.Duration, opts ...Option) int64 {
	t.Helper()
	id, err := f.SaveDelayTask(t.Context(), tag, "body", delay, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestListGoesOnFromItsCursor(t *testing.T) {
	t.Parallel()
	f := open(t)
	var want []int64
	for range 7 {
		want = append(want, f.save(t, "t", time.Hour))
		f.save(t, "u", time.Hour)
	}
	var got []int64
	filter := Filter{Tag: "t", Status: Pending, Limit: 3, DueBefore: time.Now().Add(2 * time.Hour)}
	for pages := 0; pages < 3; pages++ {
		page, err := f.List(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range page.Tasks {
			got = append(got, task.ID)
			if task.Body != nil {
				t.Error("a body came without being asked for")
			}
		}
		filter.After = page.Next
	}
	if !slices.Equal(got, want) || filter.After != 0 {
		t.Errorf("got %v and the cursor %d, want %v and 0", got, filter.After, want)
	}
}

// A body may be a MiB, and a page is in memory several times while it is sent.
func TestAPageWithBodiesIsShort(t *testing.T) {
	t.Parallel()
	f := open(t)
	items := make([]Item, maxBodies+1)
	for i := range items {
		items[i] = Item{Tag: "t", Body: "body", Delay: time.Hour}
	}
	if _, err := f.SaveDelayTasks(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	list := func(filter Filter, want int) (next int64) {
		t.Helper()
		page, err := f.List(t.Context(), filter)
		if err != nil || len(page.Tasks) != want || len(page.Tasks) > 0 && (page.Tasks[0].Body != nil) != filter.Bodies {
			t.Errorf("%+v: %d tasks, %v; want %d", filter, len(page.Tasks), err, want)
		}
		return page.Next
	}
	if next := list(Filter{Limit: maxPage}, maxBodies+1); next != 0 {
		t.Errorf("another page after %d", next)
	}
	next := list(Filter{Limit: maxPage, Bodies: true}, maxBodies)
	if next == 0 {
		t.Fatal("no other page")
	}
	list(Filter{Limit: maxPage, Bodies: true, After: next}, 1)
	list(Filter{Limit: 3, Bodies: true}, 3)
}

func TestBulkChangesCountBeforeTheyChange(t *testing.T) {
	t.Parallel()
	f := open(t)
	for range 5 {
		f.save(t, "t", time.Hour)
	}
	f.save(t, "u", time.Hour)
	var progress []int
	bulk := Bulk{Filter: Filter{Tag: "t", Limit: 2}, DryRun: true, Progress: func(done int) { progress = append(progress, done) }}
	if n, err := f.CancelAll(t.Context(), bulk); n != 5 || err != nil || !slices.Equal(progress, []int{2, 4, 5}) {
		t.Errorf("dry run: %d, %v, %v", n, err, progress)
	}
	bulk.DryRun = false
	for _, want := range []int{5, 0} {
		if n, err := f.CancelAll(t.Context(), bulk); n != want || err != nil {
			t.Errorf("cancelled %d, %v, want %d", n, err, want)
		}
	}
	if n, err := f.RetryAll(t.Context(), Bulk{}); n != 0 || err != nil {
		t.Errorf("retried %d, %v, want none", n, err)
	}
	page, err := f.List(t.Context(), Filter{Status: Pending})
	if err != nil || len(page.Tasks) != 1 {
		t.Errorf("%d tasks are left pending, %v, want 1", len(page.Tasks), err)
	}
}

func TestRetryRunsAFailedTaskAgain(t *testing.T) {
	t.Parallel()
	results, attempts := make(chan error, 2), make(chan int, 2)
	failed := make(chan struct{}, 1)
	f := open(t, func(c *Config) { c.OnFailed = func(context.Context, *processor.Task, error) { failed <- struct{}{} } })
	results <- processor.Permanent(errors.New("not yet"))
	results <- nil
	f.serve(t, "t", func(_ context.Context, task *processor.Task) error {
		attempts <- task.Attempt
		return <-results
	})
	id := f.save(t, "t", 0)
	<-failed
	if err := f.Retry(t.Context(), ID(id)); err != nil {
		t.Fatal(err)
	}
	if first, second := <-attempts, <-attempts; first != 1 || second != 1 {
		t.Errorf("the attempts were %d and %d, want 1 and 1", first, second)
	}
	if err := f.Retry(t.Context(), ID(id)); !errors.Is(err, ErrNotFailed) {
		t.Errorf("again: %v, want %v", err, ErrNotFailed)
	}
	if task := f.get(t, id); len(task.Errors) != 1 || task.Errors[0].Error != "not yet" {
		t.Errorf("the old errors are %+v", task.Errors)
	}
}

func TestRescheduleMovesThePromise(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.save(t, "t", time.Hour, WithKey("k"))
	before := f.get(t, id)
	if met, err := f.Reschedule(t.Context(), Key("t", "k"), 2*time.Hour); met != Pending || err != nil {
		t.Fatalf("by key: %v, %v", met, err)
	}
	after := f.get(t, id)
	if moved := after.Expected.Sub(before.Expected); moved < time.Hour || after.Delay != 2*time.Hour ||
		after.Due != after.Expected {
		t.Errorf("moved by %v: %+v", moved, after)
	}
	at := time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := f.Reschedule(t.Context(), ID(id), 0, To(at)); err != nil || !f.get(t, id).Expected.Equal(at) {
		t.Errorf("to a time: %v, %v", f.get(t, id).Expected, err)
	}
}

func TestTaskShowsWhatIsStored(t *testing.T) {
	t.Parallel()
	at := row.At(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))
	got := taskOf(&row.Row{
		ID: 7, Tag: "t", Status: row.Failed, IPAddress: 10<<24 | 1, Execution: at.Add(2 * time.Millisecond), Expected: at,
		Headers: []byte(`{"trace":"abc","number":7}`),
		Errors:  []byte(`[{"n":1,"finished":"2026-05-04T12:00:00Z","executor":"e","error":"no"},7]`),
	})
	if got.Status != Failed || got.IPAddress != netip.MustParseAddr("10.0.0.1") || got.Lateness() != 2*time.Millisecond ||
		len(got.Headers) != 1 || got.Headers["trace"] != "abc" || len(got.Errors) != 1 || got.Errors[0].Error != "no" {
		t.Errorf("got %+v", got)
	}
	if empty := taskOf(&row.Row{}); !empty.Expected.IsZero() || empty.Headers != nil || empty.Errors != nil ||
		empty.Lateness() != 0 {
		t.Errorf("an empty row gave %+v", empty)
	}
}

func TestBrokenRowIsListedAmongTheOthers(t *testing.T) {
	t.Parallel()
	f := open(t)
	first, broken, last := f.save(t, "t", time.Hour), f.save(t, "t", time.Hour), f.save(t, "t", time.Hour)
	_, err := f.pool(t).ExecContext(t.Context(), "UPDATE delay_task_message SET headers = 'no' WHERE id = ?", broken)
	if err != nil {
		t.Fatal(err)
	}
	page, err := f.List(t.Context(), Filter{})
	if err != nil || len(page.Tasks) != 3 {
		t.Fatalf("got %d tasks, %v", len(page.Tasks), err)
	}
	for i, id := range []int64{first, broken, last} {
		if task := page.Tasks[i]; task.ID != id || (task.Broken != "") != (id == broken) {
			t.Errorf("task %d of the list is %+v", i, task)
		}
	}
	if why, err := f.Explain(t.Context(), ID(broken)); err != nil || why.Reason != ReasonBroken {
		t.Errorf("explained as %+v, %v", why, err)
	}
	if _, err := f.SetBody(t.Context(), ID(broken), nil); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "headers") {
		t.Errorf("a new body: %v, want %v with the column", err, ErrBroken)
	}
}

func TestRankOfLateness(t *testing.T) {
	t.Parallel()
	var late []time.Duration
	for n := 200; n >= 1; n-- {
		late = append(late, time.Duration(n))
	}
	if got, want := latenessOf(late), (Lateness{Samples: 200, P50: 100, P95: 190, P99: 198, Max: 200}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := latenessOf([]time.Duration{5}), (Lateness{Samples: 1, P50: 5, P95: 5, P99: 5, Max: 5}); got != want {
		t.Errorf("of one: got %+v, want %+v", got, want)
	}
}

func TestMetricsCountSaves(t *testing.T) {
	t.Parallel()
	metrics := NewMetrics()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	f := open(t, func(c *Config) { c.Metrics = metrics })
	f.save(t, "t", time.Hour)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "delaytask_saves_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == "stored" && m.GetCounter().GetValue() == 1 {
				return
			}
		}
	}
	t.Errorf("no saves are counted in %v", families)
}

func TestNodesShowThisProcess(t *testing.T) {
	t.Parallel()
	f := open(t, func(c *Config) { c.NodeName, c.Address = "blue", "10.0.0.7:8080" })
	f.serve(t, "t", nothing)
	var nodes []Node
	for len(nodes) == 0 || len(nodes[0].Tags) == 0 { // Start does not wait until the node is announced
		var err error
		if nodes, err = f.Nodes(t.Context()); err != nil || len(nodes) != 1 {
			t.Fatalf("got %+v, %v", nodes, err)
		}
	}
	n := nodes[0]
	if want := []Share{{Tag: "t", Position: 1, Total: 1}}; !slices.Equal(n.Shares, want) {
		t.Errorf("its shares are %v, want %v", n.Shares, want)
	}
	if n.Name != "blue" || n.Address != "10.0.0.7:8080" || !n.Alive || n.Leaving || !slices.Equal(n.Tags, []string{"t"}) {
		t.Errorf("got %+v", n)
	}
}

func TestNewIDsAreAccepted(t *testing.T) {
	t.Parallel()
	f := open(t)
	for range 3 {
		if id := NewID(); f.save(t, "t", time.Hour, WithID(id)) != id {
			t.Errorf("id %d was not kept", id)
		}
	}
}
