package viewers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// A page refreshes by what it tells its script, and with the tag of its last answer.
func TestAViewerRefreshesAsTheScriptOfThePage(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	refreshes := 0
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("HX-Request") == "" {
			_, _ = w.Write([]byte(`<body data-every="1"><div id="live" hx-ext="morph" hx-get="./tasks?a=1&amp;b=2">`))
			return
		}
		refreshes++ // a viewer asks again only after the answer
		if r.URL.String() != "/ui/tasks?a=1&b=2" {
			t.Errorf("%s was asked for", r.URL)
		}
		tag := r.Header.Get("If-None-Match")
		switch {
		case refreshes == 1 && tag == "":
			w.Header().Set("ETag", `"one"`)
			_, _ = w.Write([]byte("page"))
		case refreshes == 2 && tag == `"one"`:
			w.WriteHeader(http.StatusNotModified)
		case refreshes == 3 && tag == `"one"`:
			w.WriteHeader(http.StatusNoContent)
		case refreshes == 4:
			w.WriteHeader(http.StatusServiceUnavailable)
		case refreshes == 5 && tag == `"one"`:
			leave()
		default:
			t.Errorf("refresh %d has the tag %s", refreshes, tag)
		}
	}))
	defer site.Close()
	s, err := NewSite(site.URL + "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	if err := s.View(ctx, "tasks?a=1", func() { opened++ }); err != nil || opened != 1 {
		t.Errorf("opened %d times: %v", opened, err)
	}
	got := s.Take()
	if len(got.Took) < 4 || got.Unchanged != 1 || got.PutOff != 1 || got.Failed != 1 || got.Bytes < 100 {
		t.Errorf("refreshes are %+v", got)
	}
	if got := s.Take(); len(got.Took) > 0 || got.Bytes > 0 {
		t.Errorf("they are counted again: %+v", got)
	}
}

func TestAPageThatDoesNotOpenIsAnError(t *testing.T) {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	s, err := NewSite(site.URL + "/ui/")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.View(t.Context(), "tasks", func() { t.Error("it has opened") }); err == nil {
		t.Error("it did not fail")
	}
}
