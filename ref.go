package delaytask

import (
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Ref names a task: by its id with [ID], or by tag and key with [Key]. Every method that takes one returns [ErrInvalidID] for an
// id that is not positive (the zero Ref too), [ErrInvalidTag] for a tag that cannot be one, and [ErrInvalidKey] for an empty key
// or one that is reserved. [Ref.InApp] names a key of an application.
type Ref = processor.Ref

// ID names the task with the id, finished or not.
func ID(id int64) Ref { return processor.ID(id) }

// Key names the unfinished task of the tag that carries the key; there is at most one. A finished one is named by its id.
func Key(tag, key string) Ref { return processor.Key(tag, key) }

// nameOf returns the name as the engine takes it.
func nameOf(r Ref) (engine.Ref, error) {
	id, tag, key, err := r.Parts()
	return engine.Ref{ID: id, Tag: tag, Key: row.ScopedKey(r.App(), key)}, err
}
