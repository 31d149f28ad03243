package webhook

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestRuleComparesFields(t *testing.T) {
	t.Parallel()
	f := func(rule, answer string, want bool) {
		t.Helper()
		parsed, err := ParseRule([]byte(rule))
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			return
		}
		if why := parsed.mismatch([]byte(answer)); (why == "") != want {
			t.Errorf("rule %s, answer %s: got %q", rule, answer, why)
		}
	}
	f(`{"code":1}`, `{"code":1,"message":"ok"}`, true)
	f(`{"code":1}`, ` {"code":1.0} `, true)
	f(`{"code":1}`, `{"code":10e-1}`, true)
	f(`{"code":100}`, `{"code":1E+2}`, true)
	f(`{"code":0.05}`, `{"code":5e-2}`, true)
	f(`{"code":0}`, `{"code":-0.0e5}`, true)
	f(`{"code":-1}`, `{"code":1}`, false)
	f(`{"code":1}`, `{"code":10}`, false)
	f(`{"code":1}`, `{"code":0.1}`, false)
	f(`{"code":1}`, `{"code":"1"}`, false)
	f(`{"code":1}`, `{"code":true}`, false)
	f(`{"code":1}`, `{"Code":1}`, false)
	f(`{"code":1}`, `{}`, false)
	f(`{"code":1}`, `[{"code":1}]`, false)
	f(`{"code":1}`, `{"code":1}{"code":1}`, false)
	f(`{"code":1}`, ``, false)
	f(`{"code":1}`, `OK`, false)
	f(`{"id":9007199254740993}`, `{"id":9007199254740992}`, false)
	f(`{"id":1e999999999999}`, `{"id":1e999999999999}`, true)
	f(`{"id":1e999999999999}`, `{"id":1e999999999998}`, false)
	f(`{"ok":true,"s":"A","n":null}`, `{"n":null,"s":"A","ok":true}`, true)
	f(`{"s":"A"}`, `{"s":"a"}`, false)
	f(`{"s":"\u00e4"}`, `{"s":"ä"}`, true)
	f(`{"n":null}`, `{}`, false)
	f(`{"data":{"state":"done"}}`, `{"data":{"state":"done","by":"me"}}`, true)
	f(`{"data":{"state":"done"}}`, `{"data":{"state":"open"}}`, false)
	f(`{"data":{"state":"done"}}`, `{"data":"done"}`, false)
	f(`{"data":{}}`, `{"data":{"a":1}}`, true)
	f(`{"list":[1,{"a":2}]}`, `{"list":[1.0,{"a":2,"b":3}]}`, true)
	f(`{"list":[1,2]}`, `{"list":[2,1]}`, false)
	f(`{"list":[1]}`, `{"list":[1,2]}`, false)
	f(`{}`, `not even JSON`, true)
	f(`null`, ``, true)
	f(`{"code":1}`, `{"code":1}`+strings.Repeat(" ", maxAnswer), false)
	f(`{"code":1}`, strings.Repeat("[", 60_000), false)
}

func TestMismatchNamesThePlaceInTheRule(t *testing.T) {
	t.Parallel()
	f := func(rule, answer, want string) {
		t.Helper()
		parsed, err := ParseRule([]byte(rule))
		mustOK(t, err)
		if why := parsed.mismatch([]byte(answer)); why != want {
			t.Errorf("rule %s: got %q, want %q", rule, why, want)
		}
	}
	f(`{"b":1,"a":1}`, `{"canary":1}`, `it differs at "a"`)
	f(`{"a":{"b":[0,{"c":1}]}}`, `{"a":{"b":[0,{"c":"canary"}]}}`, `it differs at "a.b[1].c"`)
	f(`{"a":{"b":1}}`, `["canary"]`, "it is not a JSON object")
	f(`{"`+strings.Repeat("a", 500)+`":1}`, `{}`, `it differs at "`+strings.Repeat("a", maxPath)+`"`)
}

// A rule is satisfied by itself, and by itself with more in it.
func FuzzRule(f *testing.F) {
	f.Add([]byte(`{"code":1}`), []byte(`{"code":1.0,"data":{"a":[1,"x",null]}}`))
	f.Add([]byte(`{"a":{"b":[1e5,-0.0,true]}}`), []byte(`{"a":{"b":[100000,0,true],"c":{}}}`))
	f.Add([]byte(`{"":1e99999999999}`), []byte("\xff"))
	f.Fuzz(func(t *testing.T, text, answer []byte) {
		rule, err := ParseRule(text)
		if err != nil {
			if !errors.Is(err, ErrInvalidRequest) {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		_ = rule.mismatch(answer)
		if why := rule.mismatch(text); why != "" && len(text) <= maxAnswer {
			t.Fatalf("%s does not satisfy itself: %s", text, why)
		}
		if rule.fields == nil {
			return
		}
		more, err := json.Marshal(rule.fields)
		mustOK(t, err)
		if _, taken := rule.fields["more"]; !taken && len(more) < maxAnswer-100 {
			separator := ","
			if len(rule.fields) == 0 {
				separator = ""
			}
			more = append(more[:len(more)-1], separator+`"more":1}`...)
			if why := rule.mismatch(more); why != "" {
				t.Fatalf("%s does not satisfy %s: %s", more, text, why)
			}
		}
	})
}
