//go:build sabotage

package sabotage

import (
	"fmt"
	"os"
	"slices"
)

// Variable names the check that is removed.
const Variable = "DELAYTASK_SABOTAGE"

var removed = fromEnvironment()

// Off reports whether the check is removed.
func Off(c Check) bool { return c == removed }

func fromEnvironment() Check {
	c := Check(os.Getenv(Variable))
	if c != "" && !slices.Contains(Checks, c) {
		panic(fmt.Sprintf("%s=%s: want one of %v", Variable, c, Checks))
	}
	return c
}
