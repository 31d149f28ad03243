package processor

import "fmt"

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
	if r.byKey() {
		return fmt.Sprintf("task with key %q of tag %q", r.key, r.tag)
	}
	return fmt.Sprintf("task %d", r.id)
}

// Parts returns what the task is named by: its id, or 0 and its tag and key. It returns [ErrInvalidID], [ErrInvalidTag] or
// [ErrInvalidKey].
func (r Ref) Parts() (id int64, tag, key string, err error) {
	switch {
	case !r.byKey() && r.id <= 0:
		return 0, "", "", fmt.Errorf("%w: got %d", ErrInvalidID, r.id)
	case r.byKey() && !ValidTag(r.tag):
		return 0, "", "", fmt.Errorf("%w: got %.140q", ErrInvalidTag, r.tag)
	case r.byKey() && r.key == "":
		return 0, "", "", fmt.Errorf("%w: it is empty", ErrInvalidKey)
	}
	return r.id, r.tag, r.key, nil
}

func (r Ref) byKey() bool { return r.tag != "" || r.key != "" }
