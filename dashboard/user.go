package dashboard

import (
	"fmt"

	"github.com/delaytask/delaytask/internal/operate/access"
)

// User is who looks at the pages, and what that person may do.
type User struct {
	Name string // stands in the audit log
	Role Role
	// Verbs are rights beyond the role, as tokens of the service have them: read, bodies, change, observe, operate,
	// schedule, audit, all.
	Verbs []string
	// Tags are those that the user sees: tags, beginnings of tags with a "*" at the end, or "*" for all.
	Tags []string
	// Open says that no login protects the pages. They say so, too.
	Open bool
}

// Role is a set of rights.
type Role string

// The roles. Each includes those before it.
const (
	Viewer   Role = "viewer"   // sees tasks, schedules, nodes and statistics; no bodies
	Operator Role = "operator" // sees bodies and changes tasks, tags and schedules
	Admin    Role = "admin"    // sees the audit log
)

var roleVerbs = map[Role][]access.Verb{
	"":       nil,
	Viewer:   {access.Read, access.Observe},
	Operator: {access.Read, access.Observe, access.Bodies, access.Change, access.Operate, access.Schedule},
	Admin:    {access.All},
}

// caller returns the rights of the user.
func (u User) caller() (access.Caller, error) {
	verbs, known := roleVerbs[u.Role]
	if !known {
		return access.Caller{}, fmt.Errorf("there is no role %.40q: want %s, %s or %s", u.Role, Viewer, Operator, Admin)
	}
	if len(u.Verbs) > 0 {
		more, err := access.ParseVerbs(u.Verbs)
		if err != nil {
			return access.Caller{}, err
		}
		verbs = append(verbs[:len(verbs):len(verbs)], more...)
	}
	if len(u.Tags) == 0 { // it sees nothing, which is no mistake
		return access.NewCaller(u.Name, verbs, nil), nil
	}
	tags, err := access.ParseTags(u.Tags)
	if err != nil {
		return access.Caller{}, err
	}
	return access.NewCaller(u.Name, verbs, tags), nil
}
