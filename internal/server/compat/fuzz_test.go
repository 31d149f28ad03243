package compat

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// sound fails the test when a decoded request breaks an assumption of the rest.
func sound(t *testing.T, r command, err error) {
	t.Helper()
	if err != nil {
		if _, ok := errors.AsType[clientError](err); !ok || err.Error() == "" {
			t.Fatalf("%#v is no sentence for the caller", err)
		}
		return
	}
	if r.delay < 0 || r.wait < 0 || r.many && r.max < 1 || !r.many && r.max != 0 {
		t.Fatalf("out of range: %+v", r)
	}
	for _, p := range []protocol{topics, jobs} {
		if key, err := p.key(r.id); err == nil && (!utf8.ValidString(key) || utf8.RuneCountInString(key) > longestKey) {
			t.Fatalf("key %q", key)
		}
		_, _ = p.ref(r.topic, r.id)
		if d, err := p.span(r.delay, errors.New("too long")); err == nil && d < 0 {
			t.Fatalf("%d wraps", r.delay)
		}
		if d, err := p.span(r.ttr, errors.New("too long")); err == nil && d < 0 {
			t.Fatalf("%d wraps", r.ttr)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"command":"add","topic":"t","id":"1","delay":1,"TTR":60,"body":"{\"n\":1}"}`,
		`{"command":"pop","topic":"t","wait":"9","max":10}`, `{"id":7,"body":{"a":[null]},"delay":-1,"ttr":null}`,
		`{"delay":9223372036854775807,"TTR":"-9223372036854775808"}`, `{"body":"\ud83d\udcee","id":"\u0000"}`,
		`{"max":1e3,"wait":1.5}`,
		`{"ID":"a","id":"b"}`, `null`, `[]`, `{"x":[[[[]]]]}`, "{\"body\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(data)
		sound(t, r, err)
		if err != nil {
			return
		}
		for _, text := range []string{r.command, r.topic, r.id, r.body} {
			if !utf8.ValidString(text) {
				t.Fatalf("%q is not UTF-8", text)
			}
		}
		again, err := json.Marshal(map[string]any{
			"command": r.command, "topic": r.topic, "id": r.id, "body": r.body, "delay": r.delay, "ttr": r.ttr,
			"wait": r.wait,
		})
		servertest.OK(t, err)
		r.many, r.max = false, 0
		if same, err := decode(again); err != nil || same != r {
			t.Fatalf("%s\n reads as %+v, %v\n and was %+v", again, same, err, r)
		}
	})
}

func FuzzDecodeQuery(f *testing.F) {
	for _, seed := range []string{
		"topic=t&id=1", "topic=t&wait=1000&max=5", "topic=%ff&id=%00", "a;b", "topic=t&topic=u", "%zz", "max=&wait=+1",
		"wait=-9223372036854775808",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := decodeQuery(raw)
		sound(t, r, err)
		if err != nil {
			return
		}
		again := url.Values{"topic": {r.topic}, "id": {r.id}, "wait": {strconv.FormatInt(r.wait, 10)}}
		if r.many {
			again.Set("max", strconv.FormatInt(r.max, 10))
		}
		if same, err := decodeQuery(again.Encode()); err != nil || same != r {
			t.Fatalf("%s\n reads as %+v, %v\n and was %+v", again.Encode(), same, err, r)
		}
	})
}
