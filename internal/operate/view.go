package operate

import (
	"maps"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
)

// View is what one caller may see. Its reads leave out what the caller may not see, or answer as if it were not there.
// They mask secrets.
type View struct {
	By
	o    *Operator
	raw  bool
	bare bool
}

// View returns what the caller may see.
func (o *Operator) View(by By) *View { return &View{By: by, o: o} }

// Raw shows secrets, which takes the verb bodies. Without it reads of tasks and schedules return an error.
func (v View) Raw(raw bool) *View {
	v.raw = raw
	return &v
}

// Bare masks nothing but addresses. It is for pages, which show a part of each text, and mask that part.
func (v View) Bare() *View {
	v.bare = true
	return &v
}

// lacking is the error of a caller that may do it in part. It is [access.ErrForbidden].
type lacking string

const (
	errSecrets lacking = "this token may not see secrets; leave out raw, or make a token with the verb bodies too"
	errBodies  lacking = "this token may not see bodies: make a token with the verb bodies too"
	errRead    lacking = "this token may read some tags only: name one with tag="
	errObserve lacking = "this token may not observe all tags: name one of its tags, as in ?tag=order.close"
)

func (l lacking) Error() string { return string(l) }

func (lacking) Is(target error) bool { return target == access.ErrForbidden }

// reveals returns an error for a caller that asks for secrets of the tag, or of some tag when it is "", and may not see
// them.
func (v *View) reveals(tag string) error {
	if v.raw && v.Allow(access.Bodies, tag) != nil {
		return errSecrets
	}
	return nil
}

// Text masks the secrets of a text of the tag, but for a caller that is shown them.
func (v *View) Text(tag, text string) string { return v.masking(tag).text(text) }

// Beginning is Text for the first bytes of a text, which may be long.
func (v *View) Beginning(tag, text string, bytes int) string {
	m := v.masking(tag)
	if m.masks == nil {
		return row.Shorten(text, bytes)
	}
	return m.masks.Beginning(tag, text, bytes)
}

// masking masks texts of one tag, and notes whether one held a secret.
type masking struct {
	masks  *redact.Redactor // nil: secrets are shown
	tag    string
	masked bool
}

func (v *View) masking(tag string) *masking {
	m := &masking{tag: tag}
	if shown := v.raw && v.May(access.Bodies, tag); !v.bare && !shown {
		m.masks = v.o.Redactor
	}
	return m
}

func (m *masking) text(stored string) string {
	shown := m.masks.Text(m.tag, stored)
	m.masked = m.masked || shown != stored
	return shown
}

// body keeps a body that is nil: it was not read.
func (m *masking) body(stored []byte) []byte {
	if len(stored) == 0 {
		return stored
	}
	text := string(stored)
	if shown := m.text(text); shown != text {
		return []byte(shown)
	}
	return stored
}

func (m *masking) headers(stored map[string]string) map[string]string {
	shown := m.masks.Headers(m.tag, stored)
	m.masked = m.masked || !maps.Equal(shown, stored)
	return shown
}
