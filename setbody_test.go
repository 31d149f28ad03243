package delaytask

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestSetBodyKeepsThePromise(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.save(t, "t", time.Hour, WithKey("k"), WithHeader("trace", "abc"))
	for _, c := range []struct {
		body any
		want string
	}{
		{map[string]int{"n": 7}, `{"n":7}`}, {"as it is, 🚀", "as it is, 🚀"}, {[]byte("[1]"), "[1]"}, {nil, ""},
	} {
		before := f.get(t, id)
		if met, err := f.SetBody(t.Context(), Key("t", "k"), c.body); met != Pending || err != nil {
			t.Fatalf("%v: %v, %v", c.body, met, err)
		}
		after := f.get(t, id)
		if string(after.Body) != c.want || after.Version != before.Version+1 {
			t.Errorf("the body is %q at version %d, want %q at %d", after.Body, after.Version, c.want, before.Version+1)
		}
		if !after.Due.Equal(before.Due) || !after.Expected.Equal(before.Expected) || after.Delay != before.Delay ||
			after.Attempt != 0 || after.Status != Pending || after.Headers["trace"] != "abc" {
			t.Errorf("got %+v, want %+v", after, before)
		}
	}
}

func TestRescheduleWithABodyIsOneStep(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.save(t, "t", time.Hour)
	at := time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := f.Reschedule(t.Context(), ID(id), 0, Body("new"), To(at)); err != nil {
		t.Fatal(err)
	}
	if task := f.get(t, id); string(task.Body) != "new" || !task.Expected.Equal(at) || task.Version != 1 {
		t.Errorf("got %+v", task)
	}
	if _, err := f.Reschedule(t.Context(), ID(id), time.Hour); err != nil || string(f.get(t, id).Body) != "new" {
		t.Errorf("without a body: %q, %v", f.get(t, id).Body, err)
	}
	if _, err := f.Reschedule(t.Context(), ID(id), time.Hour, Body(nil)); err != nil || len(f.get(t, id).Body) != 0 {
		t.Errorf("with an empty body: %q, %v", f.get(t, id).Body, err)
	}
	tx := begin(t, f.pool(t))
	if _, err := f.RescheduleTx(t.Context(), tx, ID(id), time.Hour, Body("rolled back")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil || len(f.get(t, id).Body) != 0 {
		t.Errorf("after a rollback: %q, %v", f.get(t, id).Body, err)
	}
}

func TestNewBodiesAreHeldToTheRulesOfASave(t *testing.T) {
	t.Parallel()
	f := open(t, func(c *Config) { c.BodyLimit = 10 })
	id, finished := f.save(t, "t", time.Hour), f.save(t, "t", time.Hour)
	if _, err := f.Cancel(t.Context(), ID(finished)); err != nil {
		t.Fatal(err)
	}
	set := func(id int64, body any) error {
		_, err := f.SetBody(t.Context(), ID(id), body)
		return err
	}
	reschedule := func(body any) error {
		_, err := f.Reschedule(t.Context(), ID(id), time.Hour, Body(body))
		return err
	}
	_, cancel := f.Cancel(t.Context(), ID(id), Body("b"))
	_, emptyCancel := f.Cancel(t.Context(), ID(id), Body(nil))
	for name, c := range map[string]struct{ err, want error }{
		"a body over the limit":         {set(id, strings.Repeat("x", 11)), ErrBodyTooLarge},
		"no UTF-8":                      {set(id, "\xff"), ErrInvalidBody},
		"no JSON":                       {set(id, math.NaN()), ErrInvalidBody},
		"a reschedule over the limit":   {reschedule(strings.Repeat("x", 11)), ErrBodyTooLarge},
		"a reschedule without UTF-8":    {reschedule("\xff"), ErrInvalidBody},
		"a reschedule without JSON":     {reschedule(func() {}), ErrInvalidBody},
		"a cancel with a body":          {cancel, ErrInvalidOption},
		"a cancel with an empty body":   {emptyCancel, ErrInvalidOption},
		"a task that is finished":       {set(finished, "b"), ErrFinished},
		"a task that there is not":      {set(NewID(), "b"), ErrNotFound},
		"a body over the limit as JSON": {set(id, []int{100, 200, 300}), ErrBodyTooLarge},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
	if task := f.get(t, id); task.Version != 0 || string(task.Body) != "body" {
		t.Errorf("the task was changed: %+v", task)
	}
	if err := set(id, strings.Repeat("x", 10)); err != nil {
		t.Errorf("a body of the limit: %v", err)
	}
}
