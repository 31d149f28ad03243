package dashboard

import (
	"errors"
	"log/slog"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/scheduler"
)

// dashboard is what all requests share.
type dashboard struct {
	scheduler *scheduler.Scheduler
	store     store.Store
	o         Options
	log       *slog.Logger
	audit     *audit.Log // nil: nothing is recorded
	operator  *operate.Operator
	server    server
	templates templates
	files     files
	reads     *reads
	keep      *keep
	policy    string // the Content-Security-Policy
}

// newDashboard returns what requests share, or why the options are unusable.
func newDashboard(s *scheduler.Scheduler, o Options) (*dashboard, error) {
	if o.Who == nil {
		return nil, ErrNoWho
	}
	if s == nil {
		return nil, errors.New("dashboard: there is no scheduler")
	}
	d := &dashboard{
		scheduler: s, store: core.Of(s).Store(), o: o, log: o.Log, reads: newReads(), keep: newKeep(),
	}
	if d.log == nil {
		d.log = slog.Default()
	}
	d.o.mask()
	if !o.NoAudit {
		d.audit = audit.New(audit.Config{Store: d.store, Log: d.log})
	}
	d.operator = operate.New(operate.Config{
		Core: core.Of(s), Audit: d.audit, Check: o.checked, Log: d.log, FindIn: readTime,
		Redactor: new(redact.Redactor),
	})
	var err error
	if d.policy, err = o.policy(); err != nil {
		return nil, err
	}
	if d.files, err = newFiles(); err != nil {
		return nil, err
	}
	if d.templates, err = newTemplates(d.files); err != nil {
		return nil, err
	}
	return d, nil
}
