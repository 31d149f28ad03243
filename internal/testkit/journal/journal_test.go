package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at(seconds int, detail string) Event {
	return Event{At: noon.Add(time.Duration(seconds) * time.Second), Node: "n", Kind: Phase, Detail: detail}
}

func TestEveryAppendedEventIsInTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 8, 20
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			for i := range each {
				if err := file.Append(at(i, fmt.Sprint(w))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	got, err := ReadFiles(path) // not closed: what was appended is there
	if err != nil || len(got) != writers*each {
		t.Fatalf("%d events, %v", len(got), err)
	}
	if !slices.IsSortedFunc(got, func(a, b Event) int { return a.At.Compare(b.At) }) {
		t.Error("events are out of order")
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err := file.Append(at(0, "")); err == nil {
		t.Error("an event was appended to a closed journal")
	}
	if _, err := Create(path); err == nil {
		t.Error("a second process took the file")
	}
}

func TestWhatIsWrittenWithoutWaitingStandsBesideTheRest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, err := range []error{file.Write(at(0, "a"), at(1, "b")), file.Append(at(2, "c"), at(3, "d")), file.Write()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ReadFiles(path); err != nil || len(got) != 4 || got[1].Detail != "b" || got[3].Detail != "d" {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	want := []Event{
		{At: noon, Node: "a", Kind: CallSave, Op: "1", ID: 7, Tag: "t", Key: "k", Body: "b", Expected: noon.Add(1)},
		{At: noon.Add(1), Node: "a", Kind: ReturnSave, Op: "1", ID: 7, Error: Unknown, Detail: "lost"},
		{
			At: noon.Add(2), Node: "db", Kind: Write, ID: 7, Version: 3, Attempt: 1, CrashCount: 2, Status: "executing",
			Executor: "h:1:t:9", Due: noon.Add(3), Clock: noon.Add(4),
		},
	}
	var text bytes.Buffer
	if err := WriteTo(&text, want); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(&text); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestOnlyATornLastLineIsLeftOut(t *testing.T) {
	t.Parallel()
	const line = `{"at":"2026-05-04T12:00:00Z","node":"n","kind":"phase"}` + "\n"
	for _, c := range []struct {
		text string
		want int
		says string
	}{
		{"", 0, ""},
		{line + line, 2, ""},
		{line + line[:20], 1, ""},
		{line + strings.TrimSuffix(line, "\n"), 1, ""},
		{line + "{\n" + line, 0, "line 2"},
		{line + "\n", 0, "line 2"},
		{line + `{"who":1}` + "\n", 0, "who"},
	} {
		got, err := Read(strings.NewReader(c.text))
		said := err != nil && strings.Contains(err.Error(), c.says)
		if len(got) != c.want || said != (c.says != "") {
			t.Errorf("%q: %d events, %v; want %d, %q", c.text, len(got), err, c.want, c.says)
		}
	}
}

func TestMergeKeepsTheOrderOfEachJournal(t *testing.T) {
	t.Parallel()
	a := []Event{at(1, "a1"), at(1, "a2"), at(3, "a3")}
	b := []Event{at(0, "b1"), at(1, "b2"), at(2, "b3")}
	var got []string
	for _, e := range Merge(a, b) {
		got = append(got, e.Detail)
	}
	if want := []string{"b1", "a1", "a2", "b2", "b3", "a3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFileThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := ReadFiles(filepath.Join(dir, "none"))
	if !os.IsNotExist(err) && !strings.Contains(fmt.Sprint(err), "none") {
		t.Errorf("got %v", err)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("no event\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFiles(bad); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("got %v, want the file's name", err)
	}
}
