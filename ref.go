package delaytask

import (
	"fmt"
	"strings"
)

// Ref names a task: by its id with [ID], or by tag and key with [Key]. Every method that takes one returns
// [ErrInvalidID] for an id that is not positive, and for the zero Ref. It returns [ErrInvalidTag] for an invalid tag,
// and [ErrInvalidKey] for an empty or a reserved key.
type Ref struct {
	id            int64
	tag, key, app string
}

// ID names the task with the id, finished or not.
func ID(id int64) Ref { return Ref{id: id} }

// Key names the unfinished task of the tag that carries the key; there is at most one. A finished one is named by its
// id.
func Key(tag, key string) Ref { return Ref{tag: tag, key: key} }

// InApp returns the name of the task that carries the key in the application, see [WithApp]. "" means tasks of no
// application.
func (r Ref) InApp(app string) Ref {
	r.app = app
	return r
}

// App is the application that the key belongs to, "" when it is of none.
func (r Ref) App() string { return r.app }

// String is how messages name the task.
func (r Ref) String() string {
	if r.byKey() {
		text := fmt.Sprintf("task with key %q of tag %q", r.key, r.tag)
		if r.app != "" {
			text += fmt.Sprintf(" in app %q", r.app)
		}
		return text
	}
	return fmt.Sprintf("task %d", r.id)
}

// Parts returns what the task is named by: its id, or 0 and its tag and key, which belong to [Ref.App]. It returns
// [ErrInvalidID], [ErrInvalidTag], [ErrInvalidKey], or [ErrInvalidOption] for an application that cannot be one, or
// that comes with an id.
func (r Ref) Parts() (id int64, tag, key string, err error) {
	switch {
	case !r.byKey() && r.id <= 0:
		return 0, "", "", fmt.Errorf("%w: got %d", ErrInvalidID, r.id)
	case r.byKey() && !ValidTag(r.tag):
		return 0, "", "", fmt.Errorf("%w: got %.140q", ErrInvalidTag, r.tag)
	case r.byKey() && r.key == "":
		return 0, "", "", fmt.Errorf("%w: it is empty", ErrInvalidKey)
	case !r.byKey() && r.app != "":
		return 0, "", "", fmt.Errorf("%w: an id names a task without its app", ErrInvalidOption)
	case strings.HasPrefix(r.key, appKeys):
		return 0, "", "", fmt.Errorf("%w: the beginning is reserved; name the app beside the key", ErrInvalidKey)
	}
	if r.app != "" {
		if err := checkApp(r.app); err != nil {
			return 0, "", "", err
		}
	}
	return r.id, r.tag, r.key, nil
}

func (r Ref) byKey() bool { return r.tag != "" || r.key != "" }
