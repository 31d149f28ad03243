package row

import "strings"

// PopMark begins the executor of a row that was handed out by Pop instead of to a processor. When such a lease ends,
// the caller had its chance: an attempt is spent and nothing crashed.
const PopMark = "pop:"

// Popped reports whether an executor names a Pop.
func Popped(executor string) bool { return strings.HasPrefix(executor, PopMark) }
