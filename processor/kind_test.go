package processor

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
)

func TestKindRefusesBadDefaults(t *testing.T) {
	t.Parallel()
	f := func(tag, want string, defaults ...delaytask.Option) {
		t.Helper()
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
				t.Errorf("NewKind(%q) panics with %q, want %q in it", tag, got, want)
			}
		}()
		NewKind[int](tag, defaults...)
	}
	f("", delaytask.ErrInvalidTag.Error())
	f("a b", delaytask.ErrInvalidTag.Error())
	f("t", "it is nil", nil)
	f("t", "pass them to Save", delaytask.WithKey("k"))
	f("t", "pass them to Save", delaytask.WithID(1))
	f("t", "pass them to Save", delaytask.WithTime(time.Now()))
	f("t", delaytask.ErrInvalidMaxAttempts.Error(), delaytask.WithMaxAttempts(-1))
	f("t", "contradict", delaytask.WithMaxAttempts(1), delaytask.WithNoAttemptLimit())
	f("t", "a max wait", delaytask.WithMaxWait(time.Hour))
	f("t", "<nil>", delaytask.WithMaxAttempts(5), delaytask.WithApp("shop"),
		delaytask.WithMaxLateness(time.Hour, delaytask.LateSkip), delaytask.WithHeader("a", "b"))
	f("t", "<nil>", delaytask.WithOnConflict(delaytask.ReplaceTime),
		delaytask.WithMaxWait(time.Hour)) // each save brings its key
}

func TestOptionsOfASaveFollowTheDefaults(t *testing.T) {
	t.Parallel()
	defaults := []delaytask.Option{delaytask.WithMaxAttempts(5), delaytask.WithPriority(1)}
	kind := NewKind[int]("t", defaults...)
	defaults[0] = delaytask.WithMaxAttempts(6)
	for range 2 { // a save does not change the kind
		item := kind.Item(7, time.Second, delaytask.WithPriority(2), delaytask.WithKey("k"))
		s, err := request.NewSave(item.Tag, item.Body, item.Delay, request.Limits{}, item.Options...)
		if err != nil || s.Tag+s.Key != "tk" || string(s.Body) != "7" || s.MaxAttempts != 5 || s.Priority != 2 {
			t.Errorf("saves %+v, %v", s, err)
		}
	}
	item := kind.Item(7, 0)
	if s, err := request.NewSave(item.Tag, item.Body, item.Delay, request.Limits{}, item.Options...); err != nil ||
		s.Priority != 1 {
		t.Errorf("saves %+v, %v", s, err)
	}
}

// celsius has the method that encodes it with a pointer, as the one that decodes it.
type celsius struct{ degrees int }

func (c *celsius) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%d °C"`, c.degrees), nil }

func (c *celsius) UnmarshalJSON(data []byte) error {
	_, err := fmt.Sscanf(string(data), `"%d °C"`, &c.degrees)
	return err
}

type xmlCodec struct{}

func (xmlCodec) Encode(body any) ([]byte, error)    { return xml.Marshal(body) }
func (xmlCodec) Decode(data []byte, into any) error { return xml.Unmarshal(data, into) }

// A body comes back as it was saved, whatever its type.
func TestBodiesComeBack(t *testing.T) {
	t.Parallel()
	type order struct{ Number int }
	comesBack(t, NewKind[string]("t"), "not JSON", "not JSON")
	comesBack(t, NewKind[string]("t"), "", "")
	comesBack(t, NewKind[[]byte]("t"), []byte("bytes"), "bytes")
	comesBack(t, NewKind[json.RawMessage]("t"), json.RawMessage(`{"a": 1}`), `{"a": 1}`)
	comesBack(t, NewKind[order]("t"), order{42}, `{"Number":42}`)
	comesBack(t, NewKind[*order]("t"), &order{42}, `{"Number":42}`)
	comesBack(t, NewKind[*order]("t"), nil, "null")
	comesBack(t, NewKind[any]("t"), any(1.5), "1.5")
	comesBack(t, NewKind[any]("t"), nil, "null")
	comesBack(t, NewKind[any]("t"), any("text"), `"text"`)
	comesBack(t, NewKind[int64]("t"), 1<<53+1, "9007199254740993")
	comesBack(t, NewKind[celsius]("t"), celsius{7}, `"7 °C"`)
	comesBack(t, NewKind[order]("t").WithCodec(xmlCodec{}), order{42}, "<order><Number>42</Number></order>")
	comesBack(t, NewKind[string]("t").WithCodec(xmlCodec{}), "text", "<string>text</string>")
}

func comesBack[T any](t *testing.T, kind Kind[T], body T, stored string) {
	t.Helper()
	item := kind.Item(body, 0)
	s, err := request.NewSave(item.Tag, item.Body, 0, request.Limits{}, item.Options...)
	if err != nil || string(s.Body) != stored {
		t.Fatalf("%v is stored as %q, %v, want %q", body, s.Body, err, stored)
	}
	if got, err := kind.Decode(s.Body); err != nil || !reflect.DeepEqual(got, body) {
		t.Errorf("%v comes back as %v, %v", body, got, err)
	}
}

func TestBodiesThatDoNotDecodeFailForGood(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int64{`{"Number":1`: 11, `{"Number":"a"}`: 13, "": 0, "nil": 2} {
		task := &delaytask.Task{Tag: "order.close", Body: []byte(body)}
		err := Typed(func(context.Context, *delaytask.Task,
			struct{ Number int }) error {
			return nil
		}).Process(t.Context(), task)
		e, ok := errors.AsType[*DecodeError](err)
		_, permanent := errors.AsType[*PermanentError](err)
		if !ok || e.Offset != want || e.Tag != "order.close" || !permanent {
			t.Errorf("the body %q gives %v, want an error at byte %d", body, err, want)
		}
	}
	kind := NewKind[int]("t").WithCodec(xmlCodec{})
	_, err := kind.Decode([]byte("<"))
	if e, ok := errors.AsType[*DecodeError](err); !ok || e.Offset != -1 || strings.Contains(err.Error(), "at byte") {
		t.Errorf("got %v", err)
	}
}

// popping hands out one task after the other. It notes how long each pop may wait, and which tasks are failed.
type popping struct {
	delaytask.Leases
	bodies []string
	takes  time.Duration
	waits  []time.Duration
	failed []string
}

func (s *popping) Pop(_ context.Context, tag string, opts ...delaytask.PopOption) ([]*delaytask.Popped, error) {
	p, err := request.NewPop(tag, opts...)
	if err != nil || len(s.waits) == len(s.bodies) {
		return nil, err
	}
	time.Sleep(s.takes)
	body := s.bodies[len(s.waits)]
	s.waits = append(s.waits, p.Wait)
	return []*delaytask.Popped{delaytask.NewPopped(delaytask.Task{ID: 1, Version: 1, Tag: tag, Body: []byte(body)}, s)},
		nil
}

func (s *popping) Fail(_ context.Context, _ delaytask.Token, failure error) error {
	if _, permanent := errors.AsType[*PermanentError](failure); permanent {
		s.failed = append(s.failed, failure.Error())
	}
	return nil
}

func TestPopsThatDecodeNothingShareOneWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &popping{bodies: []string{"bad", "bad", "bad"}, takes: 2 * time.Second}
		popped, err := NewKind[int]("t").Pop(t.Context(), s, delaytask.PopWait(3*time.Second))
		want := []time.Duration{3 * time.Second, time.Second, 0}
		if err != nil || len(popped) > 0 || len(s.failed) != 3 || !slices.Equal(s.waits, want) {
			t.Errorf("popped %v, %v; waited %v, want %v", popped, err, s.waits, want)
		}
	})
}

// Another tag's bodies may be of another type, and must not be failed for that.
func TestKindPopsItsOwnTagAlone(t *testing.T) {
	t.Parallel()
	s := &popping{bodies: []string{"1"}}
	_, err := NewKind[int]("t").Pop(t.Context(), s, delaytask.PopAlso("other"))
	if !errors.Is(err, delaytask.ErrInvalidOption) || len(s.waits) > 0 {
		t.Errorf("got %v after %d pops", err, len(s.waits))
	}
}

type panicking struct{ xmlCodec }

func (panicking) Decode([]byte, any) error { panic("a bug in the codec") }

func TestCodecThatPanicsFailsTheTaskAlone(t *testing.T) {
	t.Parallel()
	s := &popping{bodies: []string{"1"}}
	popped, err := NewKind[int]("t").WithCodec(panicking{}).Pop(t.Context(), s)
	if err != nil || len(popped) > 0 || len(s.failed) != 1 || !strings.Contains(s.failed[0], "a bug in the codec") {
		t.Errorf("popped %v, %v, and failed %q", popped, err, s.failed)
	}
}

type latin1 struct{ xmlCodec }

func (latin1) Encode(any) ([]byte, error) { return []byte("caf\xe9"), nil }

func TestCodecThatYieldsNoUTF8IsRefused(t *testing.T) {
	t.Parallel()
	item := NewKind[int]("t").WithCodec(latin1{}).Item(1, 0)
	if _, err := request.NewSave(item.Tag, item.Body, 0, request.Limits{}); !errors.Is(err, delaytask.ErrInvalidBody) {
		t.Errorf("got %v", err)
	}
}
