package row

import (
	"fmt"
	"strings"
)

// Stacks returns what the errors in err's tree print with %+v beyond their text, as those of pkg/errors print their
// stacks. Each follows an empty line. An error that prints more is asked for all below it; otherwise its causes are
// asked. It ends soon after limit bytes.
func Stacks(err error, limit int) string {
	var b strings.Builder
	addStacks(&b, err, limit)
	return b.String()
}

func addStacks(b *strings.Builder, err error, limit int) {
	if err == nil || b.Len() >= limit {
		return
	}
	if _, ok := err.(fmt.Formatter); ok { // fmt recovers a panic of any method it calls, and prints it
		if long := fmt.Sprintf("%+v", err); long != fmt.Sprint(err) {
			b.WriteString("\n\n" + long)
			return
		}
	}
	if e, wraps := err.(interface{ Unwrap() error }); wraps {
		addStacks(b, e.Unwrap(), limit)
	}
	if e, joins := err.(interface{ Unwrap() []error }); joins {
		for _, cause := range e.Unwrap() {
			addStacks(b, cause, limit)
		}
	}
}
