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
)

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
// arguments, and those of one journal their own.
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
