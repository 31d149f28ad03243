// Package access says who calls the HTTP service, and what the caller may do: bearer tokens, the verbs and tags of
// each, and the caller that a request comes from.
package access

import "errors"

var (
	// ErrUnauthorized is returned when nobody may call with this token: it is unknown, revoked or expired, or no token at
	// all.
	ErrUnauthorized = errors.New("the bearer token is unknown or has expired; delaytask token create makes one")

	// ErrUnavailable is returned when the tokens cannot be read, and were not read in the last minutes either. Calling
	// again later helps.
	ErrUnavailable = errors.New("the tokens cannot be read from the database; try again later")

	// ErrInvalid is returned when a token is asked for with a name, a tag or a verb that makes no sense. The text says
	// what is wanted.
	ErrInvalid = errors.New("invalid access")
)
