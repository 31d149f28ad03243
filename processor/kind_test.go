package processor

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestKindRefusesBadDefaults(t *testing.T) {
	t.Parallel()
	f := func(tag, want string, defaults ...Option) {
		t.Helper()
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
				t.Errorf("NewKind(%q) panics with %q, want %q in it", tag, got, want)
			}
		}()
		NewKind[int](tag, defaults...)
	}
	f("", ErrInvalidTag.Error())
	f("a b", ErrInvalidTag.Error())
	f("t", "it is nil", nil)
	f("t", "pass them to Save", WithKey("k"))
	f("t", "pass them to Save", WithID(1))
	f("t", "pass them to Save", WithTime(time.Now()))
	f("t", ErrInvalidMaxAttempts.Error(), WithMaxAttempts(-1))
	f("t", "contradict", WithMaxAttempts(1), WithNoAttemptLimit())
	f("t", "<nil>", WithMaxAttempts(5), WithApp("shop"), WithMaxLateness(time.Hour, LateSkip), WithHeader("a", "b"))
}

func TestOptionsOfASaveFollowTheDefaults(t *testing.T) {
	t.Parallel()
	kind := NewKind[int]("t", WithMaxAttempts(5), WithPriority(1))
	for range 2 { // a save does not change the kind
		item := kind.Item(7, time.Second, WithPriority(2), WithKey("k"))
		s, err := NewSave(item.Tag, item.Body, item.Delay, Limits{}, item.Options...)
		if err != nil || s.Tag+s.Key != "tk" || string(s.Body) != "7" || s.MaxAttempts != 5 || s.Priority != 2 {
			t.Errorf("saves %+v, %v", s, err)
		}
	}
	item := kind.Item(7, 0)
	if s, err := NewSave(item.Tag, item.Body, item.Delay, Limits{}, item.Options...); err != nil || s.Priority != 1 {
		t.Errorf("saves %+v, %v", s, err)
	}
}

type xmlCodec struct{}

func (xmlCodec) Encode(body any) ([]byte, error)    { return xml.Marshal(body) }
func (xmlCodec) Decode(data []byte, into any) error { return xml.Unmarshal(data, into) }

// What is saved comes back, whatever the type, and as it is stored.
func TestBodiesComeBack(t *testing.T) {
	t.Parallel()
	type order struct{ Number int }
	comesBack(t, NewKind[string]("t"), "not JSON", "not JSON")
	comesBack(t, NewKind[string]("t"), "", "")
	comesBack(t, NewKind[[]byte]("t"), []byte("bytes"), "bytes")
	comesBack(t, NewKind[json.RawMessage]("t"), json.RawMessage(`{"a": 1}`), `{"a": 1}`)
	comesBack(t, NewKind[order]("t"), order{42}, `{"Number":42}`)
	comesBack(t, NewKind[*order]("t"), &order{42}, `{"Number":42}`)
	comesBack(t, NewKind[any]("t"), any(1.5), "1.5")
	comesBack(t, NewKind[order]("t").WithCodec(xmlCodec{}), order{42}, "<order><Number>42</Number></order>")
	comesBack(t, NewKind[string]("t").WithCodec(xmlCodec{}), "text", "<string>text</string>")
}

func comesBack[T any](t *testing.T, kind Kind[T], body T, stored string) {
	t.Helper()
	item := kind.Item(body, 0)
	s, err := NewSave(item.Tag, item.Body, 0, Limits{}, item.Options...)
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
		task := &Task{Tag: "order.close", Body: []byte(body)}
		err := Typed(func(context.Context, *Task, struct{ Number int }) error { return nil }).Process(t.Context(), task)
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
