package doctor

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

const (
	deadline = 3 * time.Second // of a check
	atOnce   = 4               // checks
)

// check looks at one thing. An error says that it could not look.
type check struct {
	name  string
	run   func(context.Context, *Subject) ([]Finding, error)
	needs string // the privilege that the check needs and a process does not
}

// look runs a check within its deadline.
func (c check) look(ctx context.Context, s *Subject) []Finding {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	defer s.looked()
	found, err := c.run(ctx, s)
	if err != nil {
		found = append(found, s.unread(c, err))
	}
	return found
}

// unread is the finding of a check that could not look.
func (s *Subject) unread(c check, err error) Finding {
	f := Finding{
		Code: "unread_" + c.name, Severity: Warning,
		Title:   fmt.Sprintf("the check of %s could not look: %v", c.name, err),
		Meaning: "what it looks for may be there",
		Fix:     "delaytask doctor",
	}
	if c.needs != "" {
		f.Severity = Info // a process works without the privilege
	}
	switch e, classified := errors.AsType[*row.Error](err); {
	case s.readOnly && errors.Is(err, driver.ErrBadConn):
		f.Severity, f.Title = Info, fmt.Sprintf("the check of %s wants a server that takes writes", c.name)
		f.Fix = "connect to the primary"
	case sqlstore.IsDenied(err) && c.needs != "":
		needs := strings.ReplaceAll(c.needs, "DATABASE", "`"+s.account.Database+"`")
		f.Fix = "GRANT " + needs + " TO " + s.account.Grantee()
	case errors.Is(err, context.DeadlineExceeded):
		f.Title = fmt.Sprintf("the check of %s has not ended within %v", c.name, deadline)
		f.Meaning = "the database is slow, or a statement waits; " + f.Meaning
	case classified && e.Hint != "":
		f.Title, f.Fix = fmt.Sprintf("the check of %s could not look: %s: %v", c.name, e.Op, e.Err), e.Hint
	}
	return f
}

// add runs the checks, some at a time, and keeps their order.
func (r *Report) add(ctx context.Context, s *Subject, checks []check) {
	found := make([][]Finding, len(checks))
	permits := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() {
			permits <- struct{}{}
			defer func() { <-permits }()
			found[i] = c.look(ctx, s)
		})
	}
	running.Wait()
	for i, c := range checks {
		r.put(c.name, found[i])
	}
}
