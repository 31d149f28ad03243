package memstore

import (
	"encoding/json"
	"fmt"

	"github.com/delaytask/delaytask/internal/row"
)

// Plant stores r as it is, whatever it holds, in place of the row with its id: what somebody does by hand to a table.
// An unknown status, headers that are not a JSON object and errors that are not a JSON array make a row that cannot be
// decoded.
func (s *Store) Plant(r row.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks.delete(r.ID)
	if !s.tasks.put(clone(r)) {
		panic(fmt.Sprintf("memstore: planted task %d carries the key of an unfinished one", r.ID))
	}
}

// page gathers what a read returns, the rows that cannot be decoded apart from the others.
type page struct {
	rows   []row.Row
	broken []row.Broken
}

func (p *page) add(r row.Row) {
	if err := decodable(r); err != nil {
		ref := row.Ref{ID: r.ID, Version: r.Version}
		p.broken = append(p.broken, row.Broken{Ref: ref, Status: r.Status, Reason: err.Error()})
		return
	}
	r.TTR = max(r.TTR, row.MinTTR)
	p.rows = append(p.rows, clone(r))
}

// addWithoutBody is add for the reads that leave the bodies where they are.
func (p *page) addWithoutBody(r row.Row) {
	r.Body = nil
	p.add(r)
}

func decodable(r row.Row) error {
	if r.Status > row.Cancelled {
		return fmt.Errorf("unknown status %d", r.Status)
	}
	if r.LatePolicy > row.LateFail {
		return fmt.Errorf("unknown late policy %d", r.LatePolicy)
	}
	if r.Headers != nil {
		if err := json.Unmarshal(r.Headers, new(map[string]json.RawMessage)); err != nil {
			return fmt.Errorf("headers: %w", err)
		}
	}
	if r.Errors != nil {
		if err := json.Unmarshal(r.Errors, new([]json.RawMessage)); err != nil {
			return fmt.Errorf("errors: %w", err)
		}
	}
	return nil
}
