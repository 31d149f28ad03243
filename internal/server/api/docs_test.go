package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func parsed(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	servertest.OK(t, err)
	return v
}

func TestTheDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	got := s.Call("GET", "/openapi.json", "")
	if got.Status != http.StatusOK || got.Header.Get("Content-Type") != "application/openapi+json" {
		t.Fatalf("got %d %v", got.Status, got.Header)
	}
	official, err := os.ReadFile("testdata/openapi-3.1.schema.json")
	servertest.OK(t, err)
	compiler := jsonschema.NewCompiler()
	const name = "https://spec.openapis.org/oas/3.1/schema"
	servertest.OK(t, compiler.AddResource(name, parsed(t, official)))
	schema, err := compiler.Compile(name)
	servertest.OK(t, err)
	if err := schema.Validate(parsed(t, []byte(got.Text))); err != nil {
		t.Error(err)
	}
}

// contract is the document as a set of JSON schemas.
type contract struct {
	t        *testing.T
	compiler *jsonschema.Compiler
	text     string
}

func contractOf(t *testing.T, s *site) contract {
	t.Helper()
	c := contract{t, jsonschema.NewCompiler(), s.Call("GET", "/openapi.json", "").Text}
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource("http://test/openapi.json", parsed(t, []byte(c.text))); err != nil {
		t.Fatal(err)
	}
	return c
}

// fits fails the test when the text does not fit one of the document's schemas.
func (c contract) fits(name, text string) error {
	c.t.Helper()
	schema, err := c.compiler.Compile("http://test/openapi.json#/components/schemas/" + name)
	servertest.OK(c.t, err)
	return schema.Validate(parsed(c.t, []byte(text)))
}

func TestAnswersFitTheDocument(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := contractOf(t, s)
	f := func(schema, method, target, body string) string {
		t.Helper()
		got := s.Call(method, target, body)
		if err := c.fits(schema, got.Text); err != nil {
			t.Errorf("%s %s: %s is no %s: %v", method, target, got.Text, schema, err)
		}
		return got.Text
	}
	f("Saved", "POST", "/v1/tasks",
		`{"tag":"t","key":"k","app":"a","body":[1],"headers":{"a":"b"},"max_lateness":"1h"}`)
	f("Saved", "POST", "/v1/tasks", `{"tag":"t","key":"k"}`)
	var popped struct{ Tasks []struct{ ID, Token string } }
	servertest.OK(t, json.Unmarshal([]byte(f("PopReply", "POST", "/v1/tags/t/pop?wait=20s", "")), &popped))
	path, token := "/v1/tasks/"+popped.Tasks[0].ID, `"token":"`+popped.Tasks[0].Token+`"`
	f("Explanation", "GET", path+"/explain", "")
	s.Want(204, "", "POST", path+"/fail", `{`+token+`,"error":"x","permanent":true}`)
	f("Problem", "POST", path+"/finish", `{`+token+`}`)
	f("FinishBatchReply", "POST", "/v1/tasks/finish", `{"tokens":["`+popped.Tasks[0].Token+`"]}`)
	f("Task", "GET", path, "")
	f("Page", "GET", "/v1/tasks?bodies=true&limit=1", "")
	f("Met", "POST", path+"/retry", "")
	f("BatchSaved", "POST", batchPath, `[{"tag":"t"},{"tag":"t","key":"k"}]`)
	f("Problem", "POST", batchPath, `[{"tag":"t"},{"tag":""}]`)
	f("Receiver", "POST", "/v1/receivers", register)
	f("ReceiverList", "GET", "/v1/receivers", "")
	f("TagList", "GET", "/v1/tags", "")
	f("TagLateness", "GET", "/v1/tags/t/lateness", "")
	f("Stats", "GET", "/v1/stats", "")
	f("Forecast", "GET", "/v1/forecast?span=24h", "")
	f("Series", "GET", "/v1/series", "")
	f("Overview", "GET", "/v1/overview", "")
	f("AuditPage", "GET", "/v1/audit", "")
	f("BulkCount", "POST", bulkPath, `{"action":"retry","all":true,"dry_run":true}`)
	f("BulkRun", "POST", bulkPath, `{"action":"cancel","filter":{"tag":"t","due_from":1700000000,"late_by":"1h"}}`)
	f("BulkList", "GET", bulkPath, "")
	f("NodeList", "GET", "/v1/nodes", "")
}

func TestTheDocumentTakesWhatTheServerTakes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := contractOf(t, s)
	f := func(body string, want bool) {
		t.Helper()
		err := c.fits("Save", body)
		if (err == nil) != want || (s.Call("POST", "/v1/tasks", body).Status == http.StatusCreated) != want {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
	f(`{"tag":"t"}`, true)
	f(`{"tag":"t","delay":"1h","ttr":1000,"body":{"any":[null]},"late_policy":"skip","max_lateness":1}`, true)
	f(`{"tag":"t","at":"2037-01-01T00:00:00+01:00"}`, true)
	f(`{"body":1}`, false)
	f(`{"tag":1}`, false)
	f(`{"tag":"t","dealy":1}`, false)
	f(`{"tag":"t","delay":[]}`, false)
	f(`{"tag":"t","delay":-1}`, false)
	f(`{"tag":"t","priority":101}`, false)
	f(`{"tag":"t","max_attempts":-1}`, false)
	f(`{"tag":"t","late_policy":"never","max_lateness":1}`, false)
}

func TestEveryOperationIsDescribed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	page := s.Call("GET", "/docs", "")
	if strings.Contains(page.Text, "<script") || page.Header.Get("Content-Security-Policy") == "" {
		t.Error("the page may run scripts")
	}
	ids := map[string]bool{}
	for path, item := range s.api.spec.OpenAPI().Paths {
		for method, op := range operationsOf(item) {
			where := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" {
				t.Errorf("%s: id %q, summary %q", where, op.OperationID, op.Summary)
			}
			ids[op.OperationID] = true
			if !strings.Contains(page.Text, fmt.Sprintf(`id="%s"`, op.OperationID)) {
				t.Errorf("%s is missing in /docs", where)
			}
			for _, p := range op.Parameters {
				if p.Description == "" {
					t.Errorf("%s: nothing is said of %s", where, p.Name)
				}
			}
			if op.Responses["4XX"] == nil || op.Responses["5XX"] == nil || op.Responses["default"] != nil {
				t.Errorf("%s: answers %v", where, op.Responses)
			}
		}
	}
	if len(ids) < 30 {
		t.Errorf("%d operations are described", len(ids))
	}
	for _, field := range []string{"max_attempts", "no_attempt_limit", "late_policy", "Idempotency-Key"} {
		_, save, _ := strings.Cut(page.Text, `id="saveTask"`)
		if save, _, _ = strings.Cut(save, "</section>"); !strings.Contains(save, field) {
			t.Errorf("/docs does not say that a save takes %s", field)
		}
	}
	if media := page.Header.Get("Content-Type"); media != "text/html; charset=utf-8" {
		t.Errorf("the page is %s", media)
	}
}
