package delaytask

import (
	"fmt"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/processor"
)

// Ref names a task: by its id with [ID], or by tag and key with [Key]. Every method that takes one returns [ErrInvalidID] for an
// id that is not positive (the zero Ref too), [ErrInvalidTag] for a tag that cannot be one, and [ErrInvalidKey] for an empty key.
type Ref struct {
	id       int64
	tag, key string
}

// ID names the task with the id, finished or not.
func ID(id int64) Ref { return Ref{id: id} }

// Key names the unfinished task of the tag that carries the key; there is at most one. A finished one is named by its id.
func Key(tag, key string) Ref { return Ref{tag: tag, key: key} }

// String is how messages name the task.
func (r Ref) String() string {
	if r.tag != "" || r.key != "" {
		return fmt.Sprintf("task with key %q of tag %q", r.key, r.tag)
	}
	return fmt.Sprintf("task %d", r.id)
}

// check returns the name as the engine takes it.
func (r Ref) check() (engine.Ref, error) {
	switch byKey := r.tag != "" || r.key != ""; {
	case !byKey && r.id <= 0:
		return engine.Ref{}, fmt.Errorf("%w: got %d", ErrInvalidID, r.id)
	case byKey && !processor.ValidTag(r.tag):
		return engine.Ref{}, fmt.Errorf("%w: got %.140q", ErrInvalidTag, r.tag)
	case byKey && r.key == "":
		return engine.Ref{}, fmt.Errorf("%w: it is empty", ErrInvalidKey)
	}
	return engine.Ref{ID: r.id, Tag: r.tag, Key: r.key}, nil
}
