package api

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

func TestTasksAreShownAndChanged(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ctx, key := t.Context(), delaytask.Key("a/b", "..")
		id := save(t, s, "a/b", time.Hour, delaytask.WithKey(".."), delaytask.WithHeader("trace", "abc"),
			delaytask.WithMaxLateness(time.Minute, delaytask.LateFail), delaytask.WithTTR(time.Minute),
			delaytask.WithMaxAttempts(3), delaytask.WithPriority(5))
		now := func() delaytask.TaskRow {
			t.Helper()
			task, err := s.Get(ctx, key)
			servertest.OK(t, err)
			return task
		}
		// change requires that one step meets a pending task, and returns the task before and after it.
		change := func(f func() (delaytask.Status, error)) (before, after delaytask.TaskRow) {
			t.Helper()
			before = now()
			if met, err := f(); met != delaytask.Pending || err != nil {
				t.Fatalf("%v, %v", met, err)
			}
			after = now()
			if after.Version != before.Version+1 || after.Due != after.Expected {
				t.Errorf("from version %d to %d, due %v", before.Version, after.Version, after.Due.Sub(after.Expected))
			}
			return before, after
		}
		if task := now(); task.ID != id || task.Tag != "a/b" || task.Key != ".." || task.Delay != time.Hour ||
			task.TTR != time.Minute || task.MaxAttempts != 3 || task.Priority != 5 || task.MaxLate != time.Minute ||
			task.LatePolicy != delaytask.LateFail || task.Status != delaytask.Pending ||
			task.Headers["trace"] != "abc" || task.Version != 0 || task.Created.IsZero() || !task.Started.IsZero() {
			t.Errorf("got %+v", task)
		}
		e, err := s.Explain(ctx, key)
		if err != nil || e.Reason != report.ReasonNotDue || e.Text == "" || e.Task.ID != id || e.Task.Body != nil {
			t.Errorf("Explain: %+v, %v", e, err)
		}

		before, after := change(func() (delaytask.Status, error) { return s.Reschedule(ctx, key, 2*time.Hour) })
		if after.Expected.Sub(before.Expected) < time.Hour || after.Delay != 2*time.Hour || string(after.Body) != "1" {
			t.Errorf("moved from %+v to %+v", before, after)
		}
		at := time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC)
		to := func(opts ...delaytask.ChangeOption) (delaytask.Status, error) {
			return s.Reschedule(ctx, delaytask.ID(id), 0, append(opts, delaytask.To(at))...)
		}
		if _, after := change(func() (delaytask.Status, error) { return to() }); !after.Expected.Equal(at) {
			t.Errorf("expected at %v, want %v", after.Expected, at)
		}
		at = at.Add(time.Hour)
		_, after = change(func() (delaytask.Status, error) { return to(delaytask.Body("[2]")) })
		if !after.Expected.Equal(at) || string(after.Body) != "[2]" {
			t.Errorf("with a body: %+v", after)
		}

		// A new body keeps the due time.
		for want, body := range map[string]any{
			`{"n":7}`: map[string]int{"n": 7}, `"as it is, 🚀"`: `"as it is, 🚀"`, "[1]": []byte("[1]"),
			"not JSON": "not JSON", "": nil,
		} {
			before, after := change(func() (delaytask.Status, error) { return s.SetBody(ctx, key, body) })
			if string(after.Body) != want || after.Headers["trace"] != "abc" ||
				!after.Expected.Equal(before.Expected) || after.Delay != before.Delay || after.Attempt != 0 ||
				after.Status != delaytask.Pending {
				t.Errorf("got %+v, want %s and else %+v", after, want, before)
			}
		}

		version := now().Version
		wantError(t, "Retry", s.Retry(ctx, key), delaytask.ErrNotFailed)
		if met, err := s.Cancel(ctx, key); met != delaytask.Pending || err != nil {
			t.Errorf("Cancel: %v, %v", met, err)
		}
		_, again := s.Cancel(ctx, delaytask.ID(id))
		wantError(t, "Cancel of a cancelled one", again, delaytask.ErrFinished)
		_, body := s.SetBody(ctx, delaytask.ID(id), 1)
		wantError(t, "SetBody of a cancelled one", body, delaytask.ErrFinished)
		if task := get(t, s, id); task.Status != delaytask.Cancelled || task.Version != version+1 {
			t.Errorf("a second cancel changed %+v", task)
		}
	})
}

func TestReferencesAreChecked(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		for name, c := range map[string]struct {
			ref  delaytask.Ref
			want error
		}{
			"no reference":    {delaytask.Ref{}, delaytask.ErrInvalidID},
			"a negative id":   {delaytask.ID(-1), delaytask.ErrInvalidID},
			"an unknown id":   {delaytask.ID(delaytask.NewID()), delaytask.ErrNotFound},
			"a small id":      {delaytask.ID(7), delaytask.ErrNotFound},
			"an empty key":    {delaytask.Key("t", ""), delaytask.ErrInvalidKey},
			"an empty tag":    {delaytask.Key("", "k"), delaytask.ErrInvalidTag},
			"an unknown key":  {delaytask.Key("t", "k"), delaytask.ErrNotFound},
			"a tag with SQL":  {delaytask.Key("' OR 1=1 --", "k"), delaytask.ErrInvalidTag},
			"a key with SQL":  {delaytask.Key("t", "' OR 1=1 --"), delaytask.ErrNotFound},
			"a key with NULs": {delaytask.Key("t", "\x00"), delaytask.ErrNotFound},
		} {
			_, read := s.Get(t.Context(), c.ref)
			_, cancel := s.Cancel(t.Context(), c.ref)
			_, move := s.Reschedule(t.Context(), c.ref, 0)
			_, body := s.SetBody(t.Context(), c.ref, 1)
			_, explain := s.Explain(t.Context(), c.ref)
			for call, err := range map[string]error{
				"Get": read, "Cancel": cancel, "Reschedule": move, "SetBody": body, "Explain": explain,
				"Retry": s.Retry(t.Context(), c.ref),
			} {
				wantError(t, call+" with "+name, err, c.want)
			}
		}
	})
}

func TestChangesAndListsCheckTheirArguments(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ctx, id := t.Context(), save(t, s, "t", time.Hour)
		move := func(d time.Duration, opts ...delaytask.ChangeOption) error {
			_, err := s.Reschedule(ctx, delaytask.ID(id), d, opts...)
			return err
		}
		body := func(body any) error {
			_, err := s.SetBody(ctx, delaytask.ID(id), body)
			return errors.Join(err, move(time.Hour, delaytask.Body(body)))
		}
		cancel := func(opt delaytask.ChangeOption) error {
			_, err := s.Cancel(ctx, delaytask.ID(id), opt)
			return err
		}
		list := func(filter delaytask.Filter) error {
			_, err := s.List(ctx, filter)
			return err
		}
		tooLarge := make([]byte, request.DefaultBodyLimit+1)
		for name, c := range map[string]struct{ err, want error }{
			"a reschedule by -1 ns":         {move(-1), delaytask.ErrInvalidDelay},
			"a reschedule by 292 years":     {move(math.MaxInt64), delaytask.ErrDelayTooLong},
			"a reschedule to no time":       {move(0, delaytask.To(time.Time{})), delaytask.ErrInvalidTime},
			"a reschedule to both":          {move(time.Second, delaytask.To(time.Now())), delaytask.ErrInvalidOption},
			"a cancel with a time":          {cancel(delaytask.To(time.Now())), delaytask.ErrInvalidOption},
			"a cancel with an empty body":   {cancel(delaytask.Body(nil)), delaytask.ErrInvalidOption},
			"a cancel with a nil option":    {cancel(nil), delaytask.ErrInvalidOption},
			"a new body that is not UTF-8":  {body("\xff"), delaytask.ErrInvalidBody},
			"a new body that is no JSON":    {body(math.NaN()), delaytask.ErrInvalidBody},
			"a new body that is too large":  {body(tooLarge), delaytask.ErrBodyTooLarge},
			"a pause of no tag":             {s.Pause(ctx, ""), delaytask.ErrInvalidTag},
			"a resume of a bad tag":         {s.Resume(ctx, "a b"), delaytask.ErrInvalidTag},
			"a list of an unknown status":   {list(delaytask.Filter{Status: "done"}), delaytask.ErrInvalidOption},
			"a list of a bad tag":           {list(delaytask.Filter{Tag: "\xff"}), delaytask.ErrInvalidTag},
			"a page of -1":                  {list(delaytask.Filter{Limit: -1}), delaytask.ErrInvalidOption},
			"a page of a thousand millions": {list(delaytask.Filter{Limit: 1e9}), nil},
			"an invented cursor":            {list(delaytask.Filter{After: "7"}), delaytask.ErrInvalidCursor},
			"an order without a part":       {list(delaytask.Filter{Order: "due"}), delaytask.ErrInvalidOption},
			"an unknown order":              {list(delaytask.Filter{Order: "id"}), delaytask.ErrInvalidOption},
			"a key without a tag":           {list(delaytask.Filter{Key: "k"}), delaytask.ErrInvalidOption},
			"pending tasks of a group": {list(delaytask.Filter{Group: "g", Status: "pending"}),
				delaytask.ErrInvalidOption},
			"a negative lateness": {list(delaytask.Filter{LateBy: -1}), delaytask.ErrInvalidOption},
		} {
			wantError(t, name, c.err, c.want)
		}
		if err := list(delaytask.Filter{Status: "done"}); !strings.Contains(err.Error(), "want pending, ") {
			t.Errorf("an unknown status: %v, which names none", err)
		}
		if task := get(t, s, id); task.Status != delaytask.Pending || task.Version != 0 {
			t.Errorf("the task was changed: %+v", task)
		}
	})
}

func TestAChangeOfAVersionLeavesALaterOneAlone(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ctx := t.Context()
		ref := delaytask.ID(save(t, s, "t", time.Hour))
		ways := map[string]func(delaytask.ChangeOption) error{
			"SetBody": func(is delaytask.ChangeOption) error {
				_, err := s.SetBody(ctx, ref, "edited", is)
				return err
			},
			"Reschedule": func(is delaytask.ChangeOption) error {
				_, err := s.Reschedule(ctx, ref, 2*time.Hour, is, delaytask.Body("edited"))
				return err
			},
			"Cancel": func(is delaytask.ChangeOption) error {
				_, err := s.Cancel(ctx, ref, is)
				return err
			},
		}
		var edited atomic.Int64
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				switch err := ways["SetBody"](delaytask.IfVersion(0)); {
				case err == nil:
					edited.Add(1)
				case !errors.Is(err, delaytask.ErrVersionChanged):
					t.Errorf("SetBody beside others: %v", err)
				}
			})
		}
		group.Wait()
		if n := edited.Load(); n != 1 {
			t.Errorf("%d edits of one version succeeded, want 1", n)
		}
		for name, change := range ways {
			wantError(t, name+" of an old version", change(delaytask.IfVersion(0)), delaytask.ErrVersionChanged)
			wantError(t, name+" of no version", change(delaytask.IfVersion(-1)), delaytask.ErrInvalidOption)
		}
		_, err := s.SetBody(ctx, ref, 1, delaytask.Body(2))
		wantError(t, "SetBody with two bodies", err, delaytask.ErrInvalidOption)
		_, err = s.SetBody(ctx, ref, 1, delaytask.To(time.Now()))
		wantError(t, "SetBody with a time", err, delaytask.ErrInvalidOption)
		for version, name := range []string{1: "SetBody", 2: "Reschedule", 3: "Cancel"} {
			if name != "" {
				servertest.OK(t, ways[name](delaytask.IfVersion(int64(version))))
			}
		}
		wantError(t, "a finished one", ways["SetBody"](delaytask.IfVersion(4)), delaytask.ErrFinished)
	})
}

func TestATaskThatRunsIsCancelledAndNotChanged(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		running, ended := make(chan int64, 1), make(chan error, 1)
		start(t, s, "t", func(ctx context.Context, task *delaytask.Task) error {
			running <- task.ID
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		}, processor.TTR(3*time.Second)) // a client learns it by its next renewal
		save(t, s, "t", 0)
		ref := delaytask.ID(wait(t, running))
		_, pending := s.Cancel(t.Context(), ref, delaytask.OnlyPending())
		_, move := s.Reschedule(t.Context(), ref, time.Hour)
		_, body := s.SetBody(t.Context(), ref, 2)
		for name, err := range map[string]error{"Cancel": pending, "Reschedule": move, "SetBody": body} {
			wantError(t, name, err, delaytask.ErrNotPending)
		}
		if met, err := s.Cancel(t.Context(), ref); met != delaytask.Executing || err != nil {
			t.Errorf("cancelled as %v, %v", met, err)
		}
		if cause := wait(t, ended); !errors.Is(cause, delaytask.ErrCancelled) &&
			!errors.Is(cause, delaytask.ErrLeaseLost) {
			t.Errorf("the processor's context ended with %v", cause)
		}
		if task, err := s.Get(t.Context(), ref); err != nil || task.Status != delaytask.Cancelled {
			t.Errorf("the result of the cancelled attempt made it %+v, %v", task, err)
		}
	})
}

func TestBulkChangesCountBeforeTheyChange(t *testing.T) {
	t.Parallel()
	s, _ := embedded(t)
	for range 5 {
		save(t, s, "t", time.Hour)
	}
	left := save(t, s, "u", time.Hour)
	var progress []int
	bulk := delaytask.Bulk{
		Filter: delaytask.Filter{Tag: "t", Limit: 2}, DryRun: true,
		Progress: func(done int) { progress = append(progress, done) },
	}
	matched, err := s.CancelAll(t.Context(), bulk)
	if matched.Tasks != 5 || matched.Capped || matched.AsOf.IsZero() || err != nil {
		t.Errorf("dry run: %+v, %v", matched, err)
	}
	for _, none := range []delaytask.Bulk{
		{Filter: delaytask.Filter{DueBefore: time.Unix(0, 0)}}, {AsOf: time.Unix(0, 0)},
		{Filter: delaytask.Filter{DueFrom: time.Unix(1<<40, 0)}},
		{Filter: delaytask.Filter{DueBefore: time.Unix(-1<<40, 0)}},
	} {
		none.DryRun = true
		if matched, err := s.CancelAll(t.Context(), none); matched.Tasks != 0 || err != nil {
			t.Errorf("%+v: %+v, %v, want none", none, matched, err)
		}
	}
	later := save(t, s, "t", time.Hour)
	bulk.DryRun, bulk.AsOf = false, matched.AsOf
	for _, want := range []int{5, 0} {
		if done, err := s.CancelAll(t.Context(), bulk); done.Tasks != want || err != nil {
			t.Errorf("cancelled %+v, %v, want %d", done, err, want)
		}
	}
	if !slices.Equal(progress, []int{2, 4, 5, 0}) {
		t.Errorf("progress %v", progress)
	}
	if task := get(t, s, later); task.Status != delaytask.Pending {
		t.Errorf("a task that was saved after the dry run is %v", task.Status)
	}
	if done, err := s.RetryAll(t.Context(), delaytask.Bulk{}); done.Tasks != 0 || err != nil {
		t.Errorf("retried %+v, %v, want none", done, err)
	}
	_, err = s.CancelAll(t.Context(), delaytask.Bulk{Filter: delaytask.Filter{Status: delaytask.Completed}})
	wantError(t, "another status", err, delaytask.ErrInvalidOption)
	listed, err := s.List(t.Context(), delaytask.Filter{Status: delaytask.Pending, Limit: 1})
	if err != nil || listed.Next == "" {
		t.Fatal(listed, err)
	}
	_, err = s.CancelAll(t.Context(), delaytask.Bulk{Filter: delaytask.Filter{After: listed.Next}})
	wantError(t, "a page", err, delaytask.ErrInvalidOption)
	page, err := s.List(t.Context(), delaytask.Filter{Status: delaytask.Pending})
	if err != nil || len(page.Tasks) != 2 || page.Tasks[0].ID != left || page.Tasks[1].ID != later {
		t.Errorf("%+v are left pending, %v", page.Tasks, err)
	}
}

func TestABulkChangeLeavesWhatWasNotLateWhenItWasCounted(t *testing.T) {
	t.Parallel()
	s, _ := embedded(t)
	late, later := save(t, s, "t", 0), save(t, s, "t", 3*time.Second)
	bulk := delaytask.Bulk{Filter: delaytask.Filter{Tag: "t", LateBy: time.Millisecond}, DryRun: true}
	areLate := func(n int) {
		t.Helper()
		for page := (delaytask.Page{}); len(page.Tasks) < n; {
			var err error
			page, err = s.List(t.Context(), bulk.Filter)
			servertest.OK(t, err)
		}
	}
	areLate(1)
	matched, err := s.CancelAll(t.Context(), bulk)
	if matched.Tasks != 1 || err != nil {
		t.Fatalf("dry run: %+v, %v", matched, err)
	}
	areLate(2)
	bulk.DryRun, bulk.AsOf = false, matched.AsOf
	if done, err := s.CancelAll(t.Context(), bulk); done.Tasks != 1 || err != nil {
		t.Errorf("cancelled %+v, %v, want one", done, err)
	}
	for id, want := range map[int64]delaytask.Status{late: delaytask.Cancelled, later: delaytask.Pending} {
		if task := get(t, s, id); task.Status != want {
			t.Errorf("a task due at %v is %v, want %v", task.Expected, task.Status, want)
		}
	}
}

// A client cannot send an empty body, nor one that is no JSON.
func TestABodyMayBeEmptiedAndNeedNotBeJSON(t *testing.T) {
	t.Parallel()
	s, _ := embedded(t, func(c *scheduler.Config) { c.BodyLimit = 10 })
	id := save(t, s, "t", time.Hour)
	for i, c := range []struct {
		body any
		want string
	}{{"as it is", "as it is"}, {nil, ""}, {strings.Repeat("x", 10), "xxxxxxxxxx"}, {nil, ""}} {
		change := func() (delaytask.Status, error) { return s.SetBody(t.Context(), delaytask.ID(id), c.body) }
		if i > 1 {
			change = func() (delaytask.Status, error) {
				return s.Reschedule(t.Context(), delaytask.ID(id), time.Hour, delaytask.Body(c.body))
			}
		}
		if met, err := change(); met != delaytask.Pending || err != nil || string(get(t, s, id).Body) != c.want {
			t.Errorf("%v: %v, %v, the body is %q", c.body, met, err, get(t, s, id).Body)
		}
	}
	_, err := s.SetBody(t.Context(), delaytask.ID(id), []int{100, 200, 300})
	wantError(t, "a body over the configured limit", err, delaytask.ErrBodyTooLarge)
}

func TestABodyComesAloneToTheClient(t *testing.T) {
	t.Parallel()
	c := dial(t, serve(t))
	const stored = "n = 1e2\r\n\tpassword=quiet\r\n"
	id, err := c.SaveDelayTask(t.Context(), "a/b", []byte(stored), time.Hour, delaytask.WithKey(".."))
	servertest.OK(t, err)
	for _, ref := range []delaytask.Ref{delaytask.ID(id), delaytask.Key("a/b", "..")} {
		body, err := c.Body(t.Context(), ref, true)
		if err != nil || string(body) != stored {
			t.Errorf("%v: %q, %v", ref, body, err)
		}
		masked, err := c.Body(t.Context(), ref, false)
		if want := strings.Replace(stored, "quiet", redact.Mask, 1); err != nil || string(masked) != want {
			t.Errorf("%v: %q, %v", ref, masked, err)
		}
	}
	_, err = c.Body(t.Context(), delaytask.Key("a/b", "x"), false)
	wantError(t, "a body of no task", err, delaytask.ErrNotFound)
}
