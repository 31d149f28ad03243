package storetest

import (
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

var keyTests = []test{
	{"A key is taken until its task is final", func(t *tester) {
		for id, final := range map[int64]row.Status{1: row.Completed, 2: row.Failed, 3: row.Cancelled} {
			t.insert(t.keyed(id, "a", "k"))
			t.taken(t.keyed(9, "a", "k"))
			t.claim(row.Ref{ID: id})
			t.taken(t.keyed(9, "a", "k"))
			t.apply(change(t.get(id), row.Pending))
			t.taken(t.keyed(9, "a", "k"))
			t.apply(change(t.get(id), final))
			if key := t.get(id).Key; key != "k" {
				t.Errorf("the %v task lost its key: %q", final, key)
			}
		}
		t.insert(t.keyed(9, "a", "k"))
		t.found([]row.TagKey{{Tag: "a", Key: "k"}}, 9)
	}},
	{"Rows without a key, or of different tags, do not collide", func(t *tester) {
		t.insert(t.keyed(1, "a", ""), t.keyed(2, "a", ""), t.keyed(3, "a", "k"), t.keyed(4, "b", "k"),
			t.keyed(5, "ab", "c"), t.keyed(6, "a", "bc"))
	}},
	{"Tags and keys are compared byte by byte", keysAreBinary},
	{"A key that begins with s3: is one for all tags", func(t *tester) {
		t.insert(t.keyed(1, "a", "s3:order-1"))
		t.taken(t.keyed(2, "b", "s3:order-1"))
		t.insert(t.keyed(3, "b", "S3:order-1"), t.keyed(4, "a", "S3:order-1"))
		t.insert(t.keyed(5, "b", "s3"), t.keyed(6, "a", "s3"))
		t.found([]row.TagKey{{Tag: "b", Key: "s3:order-1"}}, 1)
	}},
	{"FindActive finds unfinished tasks by their keys", func(t *tester) {
		t.insert(t.keyed(1, "a", "k"), t.keyed(2, "b", "k"), t.keyed(3, "a", "l"), t.keyed(4, "a", "m"))
		t.insert(t.keyed(5, "a", ""))
		t.claim(row.Ref{ID: 3})
		t.apply(change(t.get(4), row.Cancelled))
		t.found([]row.TagKey{{Tag: "a", Key: "k"}, {Tag: "a", Key: "k"}}, 1)
		t.found([]row.TagKey{{Tag: "b", Key: "k"}, {Tag: "a", Key: "l"}, {Tag: "a", Key: "none"}}, 2, 3)
		t.found([]row.TagKey{{Tag: "a", Key: "m"}})
		t.found([]row.TagKey{{Tag: "b", Key: "l"}})
		rows, err := t.store.FindActive(t.Context(), nil, []row.TagKey{{Tag: "a", Key: "k"}})
		t.must(err)
		t.unchanged(rows[0])
	}},
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

func (t *tester) found(keys []row.TagKey, want ...int64) {
	t.Helper()
	if got := t.findActive(keys...); !slices.Equal(got, want) {
		t.Fatalf("keys %q: found %v, want %v", keys, got, want)
	}
}

func keysAreBinary(t *tester) {
	keys := []string{
		"x", "x ", " x", "X", "x\x00", "x\t", "ß", "ss", "ẞ", "İ", "i", "ı", "%", "_", `\`, "'", "0", "00", "0.0",
		"null", "NULL", "\u00e9", "e\u0301", "é ", "🚀", "🚀🚀", "\U0001f3f3\ufe0f", "\U0001f3f3", "\ufeffx", "x\u200d",
		strings.Repeat("k", 254), strings.Repeat("k", 255), strings.Repeat("k", 254) + "K", strings.Repeat("🚀", 255),
	}
	var rows []row.Row
	long := strings.Repeat("t", 127)
	for _, tag := range []string{"A", "a", "a.b", "a_b", "a-b", long + "t", long + "T"} {
		for _, key := range keys {
			rows = append(rows, t.keyed(int64(len(rows)+1), tag, key))
		}
	}
	t.insert(rows...)
	stored := t.all()
	if len(stored) != len(rows) {
		t.Fatalf("stored %d rows of %d", len(stored), len(rows))
	}
	for i, got := range stored {
		if want := rows[i]; got.Tag != want.Tag || got.Key != want.Key {
			t.Fatalf("tag %q, key %q came back as %q, %q", want.Tag, want.Key, got.Tag, got.Key)
		}
		t.found([]row.TagKey{{Tag: got.Tag, Key: got.Key}}, got.ID)
	}
	for _, key := range keys {
		t.taken(t.keyed(1000, "a", key))
	}
}
