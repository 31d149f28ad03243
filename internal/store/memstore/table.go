package memstore

import (
	"bytes"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// table holds the rows and their indexes. A stored row is never changed in place, only replaced.
type table struct {
	rows   map[int64]row.Row
	ids    index                            // of all rows, without due times
	active map[row.TagKey]int64             // the unfinished row that carries a key
	queues map[row.Status]map[string]*index // by status and tag
}

func newTable() *table {
	return &table{
		rows:   make(map[int64]row.Row),
		active: make(map[row.TagKey]int64),
		queues: make(map[row.Status]map[string]*index),
	}
}

func activeKey(tag, key string) row.TagKey { return row.TagKey{Tag: tag, Key: key}.Scope() }

func holdsKey(r row.Row) bool {
	return r.Key != "" && (r.Status == row.Pending || r.Status == row.Executing)
}

// put stores r in place of the row with its id. It reports false and changes nothing when another unfinished row
// carries the key.
func (t *table) put(r row.Row) bool {
	key := activeKey(r.Tag, r.Key)
	if holdsKey(r) {
		if id, taken := t.active[key]; taken && id != r.ID {
			return false
		}
	}
	t.delete(r.ID)
	if holdsKey(r) {
		t.active[key] = r.ID
	}
	t.rows[r.ID] = r
	t.ids.insert(row.Place{ID: r.ID})
	t.queue(r.Status, r.Tag).insert(row.Place{Due: r.Due, ID: r.ID})
	return true
}

func (t *table) delete(id int64) {
	r, ok := t.rows[id]
	if !ok {
		return
	}
	if holdsKey(r) {
		delete(t.active, activeKey(r.Tag, r.Key))
	}
	delete(t.rows, id)
	t.ids.remove(row.Place{ID: id})
	t.queue(r.Status, r.Tag).remove(row.Place{Due: r.Due, ID: id})
}

func (t *table) queue(status row.Status, tag string) *index {
	tags, ok := t.queues[status]
	if !ok {
		tags = make(map[string]*index)
		t.queues[status] = tags
	}
	q, ok := tags[tag]
	if !ok {
		q = new(index)
		tags[tag] = q
	}
	return q
}

func firstOf(found []row.Place, limit int) []row.Place {
	slices.SortFunc(found, row.Place.Compare)
	return found[:min(limit, len(found))]
}

// clone copies a row with its bytes, which the store must not share with its callers.
func clone(r row.Row) row.Row {
	r.Body = bytes.Clone(r.Body)
	r.Headers = bytes.Clone(r.Headers)
	r.Errors = bytes.Clone(r.Errors)
	if r.TickOf != nil {
		of := *r.TickOf
		r.TickOf = &of
	}
	return r
}
