package dashboard

import (
	"errors"
	"net/http"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/wire"
)

var (
	errNoPage      = errors.New("there is no such page")
	errMethod      = errors.New("this address does not take the method")
	errForbidden   = errors.New("you may not do this")
	errReadOnly    = errors.New("this dashboard is read-only")
	errCrossOrigin = errors.New("the request comes from a page of another site")
	errNoUser      = errors.New("who you are cannot be told now")
	errSlow        = errors.New("the database takes too long")
	errForm        = errors.New("the form cannot be read")
	errQuery       = errors.New("the query of the address cannot be read")
	errNoNode      = errors.New("no process has this number")
	errNoReceiver  = errors.New("there is no such receiver")
)

// invalid is a mistake in what the user has typed into a field.
type invalid struct {
	field string
	want  string // the key of the text that says what belongs there
	arg   any    // of that text, if it has one
}

func (e invalid) Error() string { return e.field + ": " + sentence.Fill(texts[e.want]["en"], e.arg) }

// answers are the statuses and codes of errors that only pages have. The first that fits counts.
var answers = []struct {
	err    error
	status int
	code   string
}{
	{errNoPage, http.StatusNotFound, "no_page"},
	{errMethod, http.StatusMethodNotAllowed, "method"},
	{errNoNode, http.StatusNotFound, "no_node"},
	{errNoReceiver, http.StatusNotFound, "no_receiver"},
	{ErrSignIn, http.StatusUnauthorized, "sign_in"},
	{errReadOnly, http.StatusForbidden, "read_only"},
	{errForbidden, http.StatusForbidden, wire.CodeForbidden},
	{errCrossOrigin, http.StatusForbidden, wire.CodeCrossOrigin},
	{delaytask.ErrOverloaded, http.StatusServiceUnavailable, wire.CodeOverloaded}, // also of a form
	{errForm, http.StatusBadRequest, "form"},
	{errQuery, http.StatusBadRequest, "query"},
	{errNoUser, http.StatusServiceUnavailable, "no_user"},
	{errSlow, http.StatusServiceUnavailable, "slow"},
}

// errorText begins the keys of the texts of errors, before their codes.
const errorText = "error."

// statusOf returns the status of an answer with the error. An unknown error is the database's.
func statusOf(err error) int {
	status, _, _ := answerTo(err)
	return status
}

// answerTo returns the status and the code of an error, and the detail that its English text may have.
func answerTo(err error) (status int, code, detail string) {
	if _, typed := errors.AsType[invalid](err); typed {
		return http.StatusBadRequest, "invalid", ""
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return a.status, a.code, ""
		}
	}
	if p, refused := errors.AsType[*wire.Problem](err); refused { // by Options.Check of the service
		return p.Status, p.Code, p.Detail
	}
	if p, known := operate.Problem(err); known && p.Code != wire.CodeUnavailable {
		return p.Status, p.Code, p.Detail
	}
	return http.StatusServiceUnavailable, wire.CodeUnavailable, ""
}
