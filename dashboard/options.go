package dashboard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/browser"
)

// Options configures a dashboard.
type Options struct {
	// Who returns the user that a request comes from, or [ErrSignIn]. Any other error is logged and answered with 503.
	// It must be set.
	Who func(*http.Request) (User, error)
	// SignIn is where a reader without a user is sent, as a URL or relative to the dashboard. The path of the page is
	// added as the parameter next. Default "": such requests are answered with 401.
	SignIn string
	// SignOut is where the form behind the user's name is sent by POST. Default "": no form.
	SignOut string
	// ReadOnly takes all actions away from all users.
	ReadOnly bool
	// FrameAncestors lists the origins that may show the pages in a frame, as Content-Security-Policy takes them.
	// Default: none.
	FrameAncestors []string
	// Down reports whether this process leaves the host of a receiver's address alone because it does not answer, and
	// when a call tries it again. The method of a webhook.Client of package processor/webhook does. Default: the pages
	// do not say it.
	Down func(address string) (again time.Time, down bool)
	// Redact returns a text of a task of the tag as people may see it: a body, an error, or a header as a JSON object
	// with its name and value. Default: values of members named like password, token or secret, and credentials in
	// texts, are masked.
	Redact func(tag, text string) string
	// RedactBeginning returns the beginning of such a text, of about as many bytes. It spares pages the rest of long
	// texts. Default: the beginning of what Redact returns.
	RedactBeginning func(tag, text string, bytes int) string
	// Check returns why a task of the tag cannot have the body that a user gives it. Its text is shown to the user.
	// Default: there are no rules besides the rules of a save.
	Check func(tag string, body []byte) error
	// NoAudit leaves what users do out of the audit log. Default: it is recorded, and without an entry nothing is done.
	NoAudit bool
	// Log gets what goes wrong. Default [slog.Default].
	Log *slog.Logger
}

// ErrSignIn is returned by Options.Who for a request without a user.
var ErrSignIn = errors.New("sign in first")

// ErrNoWho is returned by [New] where Options.Who is missing.
var ErrNoWho = errors.New("dashboard: Options.Who is missing; without it everybody could do everything")

// mask completes the functions that mask.
func (o *Options) mask() {
	switch {
	case o.Redact == nil:
		o.Redact, o.RedactBeginning = redact.Text, new(redact.Redactor).Beginning
	case o.RedactBeginning == nil:
		o.RedactBeginning = func(tag, text string, bytes int) string {
			return row.Shorten(o.Redact(tag, text), bytes)
		}
	}
}

// checked is Check, whose error tells what is wrong with the body.
func (o *Options) checked(tag string, body []byte) error {
	if o.Check == nil {
		return nil
	}
	if err := o.Check(tag, body); err != nil {
		return fmt.Errorf("%w: %w", delaytask.ErrInvalidBody, err)
	}
	return nil
}

// policy returns the Content-Security-Policy.
func (o *Options) policy() (string, error) {
	for _, origin := range o.FrameAncestors {
		if origin == "" || strings.ContainsAny(origin, ";,\r\n\t ") {
			return "", fmt.Errorf("dashboard: FrameAncestors: %.100q is no origin, such as https://example.com", origin)
		}
	}
	return browser.Policy(o.FrameAncestors...), nil
}
