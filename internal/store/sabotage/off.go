//go:build !sabotage

package sabotage

// Off reports whether the check is removed: never.
func Off(Check) bool { return false }
