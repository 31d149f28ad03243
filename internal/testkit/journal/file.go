package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// File is a journal of JSON lines, for a process that may be killed at any moment: events that were appended are on the
// disk.
type File struct {
	file *os.File

	mu      sync.Mutex // one line at a time
	written int

	syncing sync.Mutex // one fsync at a time, for all lines written before it
	synced  int
}

// Create makes a file for one process. There must be none yet: only then is a torn line the last one.
func Create(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a journal: %w", err)
	}
	return &File{file: file}, nil
}

// Append adds events at the end and returns when they are on the disk.
func (f *File) Append(events ...Event) error {
	n, err := f.write(events)
	if err != nil {
		return err
	}
	return f.sync(n)
}

// Write adds events at the end. They outlive the process when it returns, but perhaps not the machine.
func (f *File) Write(events ...Event) error {
	_, err := f.write(events)
	return err
}

// write returns the number of the write, for sync.
func (f *File) write(events []Event) (n int, err error) {
	var lines []byte
	for i := range events {
		line, err := json.Marshal(&events[i])
		if err != nil {
			return 0, fmt.Errorf("write to the journal: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.file.Write(lines); err != nil {
		return 0, fmt.Errorf("write to the journal: %w", err)
	}
	f.written++
	return f.written, nil
}

// sync returns when the n-th write is on the disk. What was written while another fsync ran shares the next one.
func (f *File) sync(n int) error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.synced >= n {
		return nil
	}
	f.mu.Lock()
	upTo := f.written
	f.mu.Unlock()
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("bring the journal to the disk: %w", err)
	}
	f.synced = upTo
	return nil
}

func (f *File) Close() error { return f.file.Close() }

// pageSize is how many events a page of a journal in memory has room for.
const pageSize = 256

// Memory is a journal in memory. The zero value is an empty one. It is kept in pages, because events are large and a
// slice that grows copies them again and again.
type Memory struct {
	mu    sync.Mutex
	pages [][]Event
}

func (m *Memory) Append(events ...Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(events) > 0 {
		last := len(m.pages) - 1
		if last < 0 || len(m.pages[last]) == pageSize {
			m.pages = append(m.pages, make([]Event, 0, pageSize))
			last++
		}
		n := min(len(events), pageSize-len(m.pages[last]))
		m.pages[last] = append(m.pages[last], events[:n]...)
		events = events[n:]
	}
}

func (m *Memory) Events() []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Concat(m.pages...)
}

// Read returns the events of a file as [File] or [WriteTo] made it. A last line that is torn is left out: its process
// was killed while it wrote, so it had not appended the event yet. Any other line that is no event is an error.
func Read(from io.Reader) ([]Event, error) {
	var events []Event
	lines := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read a journal: %w", err)
		}
		var e Event
		decode := json.NewDecoder(bytes.NewReader(line))
		decode.DisallowUnknownFields()
		if err := decode.Decode(&e); err != nil {
			return nil, fmt.Errorf("line %d of a journal: %w", n, err)
		}
		events = append(events, e)
	}
}

// ReadFiles returns the events of several processes in one order.
func ReadFiles(paths ...string) ([]Event, error) {
	journals := make([][]Event, len(paths))
	for i, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read a journal: %w", err)
		}
		journals[i], err = Read(file)
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return Merge(journals...), nil
}

// Merge puts the events of several journals into one order, by time. Events of one moment keep the order of the
// arguments, and events of one journal their own.
func Merge(journals ...[]Event) []Event {
	all := slices.Concat(journals...)
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	return all
}

// WriteTo writes events the way [Read] reads them.
func WriteTo(w io.Writer, events []Event) error {
	buffered := bufio.NewWriter(w)
	lines := json.NewEncoder(buffered)
	for _, e := range events {
		if err := lines.Encode(e); err != nil {
			return fmt.Errorf("write a journal: %w", err)
		}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("write a journal: %w", err)
	}
	return nil
}
