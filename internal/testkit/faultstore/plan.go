package faultstore

// Call is one call of the store, before it is made.
type Call struct {
	Method string // as in store.Store: "Insert", "Claim", …
	N      int    // 1 for the first call of any method
	OfKind int    // 1 for the first call of this method
}

// Mode is what becomes of a call.
type Mode int

const (
	// Pass makes the call as it is.
	Pass Mode = iota
	// Before does not make the call and answers row.ClassNotApplied.
	Before
	// After makes the call and loses the reply: row.ClassUnknown.
	After
	// Hang never makes the call, waits until the caller's context ends, and answers row.ClassUnknown.
	Hang
	// Late answers as Hang does, and makes the call [LateBy] after the caller has given up.
	Late
	// Twice makes the call twice and answers what the second one met: a request that was sent again although it had
	// arrived.
	Twice
)

func (m Mode) String() string {
	return [...]string{"pass", "before", "after", "hang", "late", "twice"}[m]
}

// Modes are all ways to fail, for tests that try every one of them.
var Modes = []Mode{Before, After, Hang, Late, Twice}

// Plan decides what becomes of a call. It may be asked from many goroutines, by one at a time.
type Plan func(Call) Mode

// Nth treats the n-th call of any method.
func Nth(n int, mode Mode) Plan {
	return func(c Call) Mode {
		if c.N == n {
			return mode
		}
		return Pass
	}
}

// Method treats the n-th call of the method; n = 0 stands for every call.
func Method(name string, n int, mode Mode) Plan {
	return func(c Call) Mode {
		if c.Method == name && (n == 0 || c.OfKind == n) {
			return mode
		}
		return Pass
	}
}
