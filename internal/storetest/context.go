package storetest

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
)

var contextTests = []test{
	{"Nothing is stored for a caller who has gone", func(t *tester) {
		if err := t.store.Insert(gone(t), nil, []row.Row{t.task(1)}); !row.Ended(err) {
			t.Fatalf("error %v, want that the context ended", err)
		}
		t.missing(1)
	}},
	{"Nothing is claimed, renewed or settled for a caller who has gone", func(t *tester) {
		pending := t.task(1)
		t.insert(pending)
		executing := t.take(t.task(2))
		pending = t.get(1)
		if _, err := t.store.Claim(gone(t), row.Claim{Rows: []row.Ref{ref(pending)}, Executor: "late"}); !row.Ended(err) {
			t.Errorf("Claim: error %v, want that the context ended", err)
		}
		if _, err := t.store.Renew(gone(t), []row.Lease{{Ref: ref(executing), TTR: 1e12}}); !row.Ended(err) {
			t.Errorf("Renew: error %v, want that the context ended", err)
		}
		if _, err := t.store.Update(gone(t), nil, []row.Change{change(executing, row.Completed)}); !row.Ended(err) {
			t.Errorf("Update: error %v, want that the context ended", err)
		}
		t.unchanged(pending)
		t.unchanged(executing)
	}},
	{"Reads say that the caller has gone", func(t *tester) {
		reads := map[string]func(ctx context.Context) error{
			"Now":  func(ctx context.Context) error { _, err := t.store.Now(ctx); return err },
			"Get":  func(ctx context.Context) error { _, _, err := t.store.Get(ctx, nil, []int64{1}); return err },
			"Due":  func(ctx context.Context) error { _, err := t.store.Due(ctx, everything("a")); return err },
			"Tags": func(ctx context.Context) error { _, err := t.store.Tags(ctx); return err },
		}
		for name, read := range reads {
			if err := read(gone(t)); !row.Ended(err) {
				t.Errorf("%s: error %v, want that the context ended", name, err)
			}
		}
	}},
}

func gone(t *tester) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
