package storetest

import (
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

var keyTests = []test{
	{"A key is taken while its task is pending or executing", func(t *tester) {
		t.insert(t.keyed(1, "a", "k"))
		t.taken(t.keyed(2, "a", "k"))
		t.claim(row.Ref{ID: 1})
		t.taken(t.keyed(2, "a", "k"))
	}},
	{"A taken key refuses the whole batch", func(t *tester) {
		t.insert(t.keyed(2, "a", "k"))
		before := t.get(2)
		batch := []row.Row{t.keyed(1, "a", ""), t.keyed(3, "a", "k"), t.keyed(4, "a", "free")}
		t.refused(t.store.Insert(t.Context(), nil, batch), row.ClassDuplicate)
		t.missing(1, 3, 4)
		t.unchanged(before)
		if found := t.findActive(row.TagKey{Tag: "a", Key: "free"}); len(found) != 0 {
			t.Fatalf("a key of the refused batch is taken by %v", found)
		}
	}},
	{"A key twice in a batch refuses the whole batch", func(t *tester) {
		batch := []row.Row{t.keyed(1, "a", "k"), t.keyed(2, "a", "k")}
		t.refused(t.store.Insert(t.Context(), nil, batch), row.ClassDuplicate)
		t.missing(1, 2)
		t.insert(t.keyed(3, "a", "k"))
	}},
	{"Rows without a key do not meet", func(t *tester) { t.insert(t.keyed(1, "a", ""), t.keyed(2, "a", "")) }},
	{"A key is free again once its task is final", func(t *tester) {
		for i, status := range []row.Status{row.Completed, row.Failed, row.Cancelled} {
			id := int64(i*2 + 1)
			t.insertAs(t.keyed(id, "a", "k"), status, t.start)
			t.insert(t.keyed(id+1, "a", "k"))
			if found := t.findActive(row.TagKey{Tag: "a", Key: "k"}); !slices.Equal(found, []int64{id + 1}) {
				t.Fatalf("the key is carried by %v, want %d", found, id+1)
			}
			if key := t.get(id).Key; key != "k" {
				t.Errorf("the finished task lost its key: %q", key)
			}
			t.apply(change(t.get(id+1), row.Cancelled))
		}
	}},
	{"A key stays taken when its task goes back to pending", func(t *tester) {
		r := t.take(t.keyed(1, "a", "k"))
		t.apply(change(r, row.Pending))
		t.taken(t.keyed(2, "a", "k"))
	}},
	{"Different tags have the same key", func(t *tester) { t.insert(t.keyed(1, "a", "k"), t.keyed(2, "b", "k")) }},
	{"Tag and key do not run into each other", func(t *tester) { t.insert(t.keyed(1, "ab", "c"), t.keyed(2, "a", "bc")) }},
	{"Tags and keys are compared byte by byte", keysAreBinary},
	{"A key that begins with s3: is one for all tags", func(t *tester) {
		t.insert(t.keyed(1, "a", "s3:order-1"))
		t.taken(t.keyed(2, "b", "s3:order-1"))
		t.insert(t.keyed(3, "b", "S3:order-1"), t.keyed(4, "a", "S3:order-1"), t.keyed(5, "b", "s3"), t.keyed(6, "a", "s3"))
		if found := t.findActive(row.TagKey{Tag: "b", Key: "s3:order-1"}); !slices.Equal(found, []int64{1}) {
			t.Fatalf("found %v by another tag, want the task that carries the key: 1", found)
		}
	}},
	{"FindActive finds unfinished tasks by their keys", findActiveFinds},
	{"FindActive returns whole rows", func(t *tester) {
		t.insert(t.keyed(1, "a", "k"))
		rows, err := t.store.FindActive(t.Context(), nil, []row.TagKey{{Tag: "a", Key: "k"}})
		t.must(err)
		if len(rows) != 1 {
			t.Fatalf("found %d rows of one", len(rows))
		}
		t.unchanged(rows[0])
	}},
}

func (t *tester) keyed(id int64, tag, key string) row.Row {
	r := t.task(id)
	r.Tag, r.Key = tag, key
	return r
}

func (t *tester) taken(r row.Row) {
	t.Helper()
	t.refused(t.store.Insert(t.Context(), nil, []row.Row{r}), row.ClassDuplicate)
	t.missing(r.ID)
}

func (t *tester) findActive(keys ...row.TagKey) []int64 {
	t.Helper()
	rows, err := t.store.FindActive(t.Context(), nil, keys)
	t.must(err)
	return slices.Sorted(slices.Values(idsOf(rows)))
}

func keysAreBinary(t *tester) {
	keys := []string{
		"x", "x ", " x", "X", "x\x00", "x\t", "ß", "ss", "ẞ", "İ", "i", "ı", "%", "_", `\`, "'", "0", "00", "0.0", "null", "NULL",
		"\u00e9", "e\u0301", "é ", "🚀", "🚀🚀", "\U0001f3f3\ufe0f", "\U0001f3f3", "\ufeffx", "x\u200d",
		strings.Repeat("k", 254), strings.Repeat("k", 255), strings.Repeat("k", 254) + "K", strings.Repeat("🚀", 255),
	}
	var id int64
	for _, tag := range []string{"A", "a", "a.b", "a_b", "a-b", strings.Repeat("t", 128), strings.Repeat("t", 127) + "T"} {
		for _, key := range keys {
			id++
			t.insert(t.keyed(id, tag, key))
			if found := t.findActive(row.TagKey{Tag: tag, Key: key}); !slices.Equal(found, []int64{id}) {
				t.Fatalf("tag %q, key %q: found %v, want %d", tag, key, found, id)
			}
			if got := t.get(id); got.Tag != tag || got.Key != key {
				t.Fatalf("tag %q, key %q came back as %q, %q", tag, key, got.Tag, got.Key)
			}
		}
	}
	for _, key := range keys {
		id++
		t.taken(t.keyed(id, "a", key))
	}
}

func findActiveFinds(t *tester) {
	t.insert(t.keyed(1, "a", "k"), t.keyed(2, "b", "k"), t.keyed(3, "a", "l"), t.keyed(4, "a", "m"), t.keyed(5, "a", ""))
	t.claim(row.Ref{ID: 3})
	t.apply(change(t.get(4), row.Cancelled))
	for _, c := range []struct {
		keys []row.TagKey
		want []int64
	}{
		{nil, nil},
		{[]row.TagKey{{Tag: "a", Key: "k"}}, []int64{1}},
		{[]row.TagKey{{Tag: "a", Key: "k"}, {Tag: "a", Key: "k"}}, []int64{1}},
		{[]row.TagKey{{Tag: "b", Key: "k"}, {Tag: "a", Key: "l"}, {Tag: "a", Key: "none"}}, []int64{2, 3}},
		{[]row.TagKey{{Tag: "a", Key: "m"}}, nil},
		{[]row.TagKey{{Tag: "b", Key: "l"}}, nil},
	} {
		if got := t.findActive(c.keys...); !slices.Equal(got, c.want) {
			t.Errorf("keys %v: found %v, want %v", c.keys, got, c.want)
		}
	}
}
