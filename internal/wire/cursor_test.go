package wire

import "testing"

func TestACursorBelongsToItsList(t *testing.T) {
	t.Parallel()
	list := Cursor{Tag: "a", Status: "failed", Key: "k", DueBefore: "2027-01-31T08:30:00Z"}
	made := list
	made.After = 7130000000000000000
	text := made.String()
	read := list
	if !read.Parse(text) || read != made {
		t.Errorf("%q was read as %+v, want %+v", text, read, made)
	}
	for _, other := range []Cursor{
		{}, {Tag: "b", Status: list.Status, Key: list.Key, DueBefore: list.DueBefore}, {Tag: list.Tag, Status: list.Status,
			Key: list.Key},
		{Tag: list.Tag, Status: list.Status, Key: list.Key, DueBefore: list.DueBefore, App: "shop"},
	} {
		if other.Parse(text) {
			t.Errorf("the list %+v took a cursor of another one", other)
		}
	}
	for _, text := range []string{"", "x", text[1:], text + "A", "AAAAAAAAAAAAAAAAAAAAAA", Cursor{After: -1}.String()} {
		if none := (Cursor{}); none.Parse(text) {
			t.Errorf("%q was read as a cursor", text)
		}
	}
}
