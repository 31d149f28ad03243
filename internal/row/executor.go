package row

import (
	"fmt"
	"strconv"
	"strings"
)

// Executor names a claim by two numbers, so that a row keeps its size when it is claimed. The zero value names none.
type Executor struct {
	Process int64 // drawn when the process starts: see [ProcessOf]
	Claim   int64 // number of the claim in its process; negative: a pop handed the task out, not to a processor
}

// ProcessOf returns the number of the process whose node has the token, and false where it is not 16 hexadecimal
// digits.
func ProcessOf(token string) (int64, bool) {
	n, err := strconv.ParseUint(token, 16, 64)
	return int64(n), err == nil && len(token) == 16
}

// Token returns the token of the process's node.
func (e Executor) Token() string { return fmt.Sprintf("%016x", uint64(e.Process)) }

// Popped reports whether the executor is the caller of a pop. When such a lease ends, the attempt has failed and no
// process has crashed.
func (e Executor) Popped() bool { return e.Claim < 0 }

// ForPop returns the executor of a row that the claim's process hands out by a pop.
func (e Executor) ForPop() Executor {
	e.Claim = -max(e.Claim, -e.Claim)
	return e
}

// String returns the text for people, of an executor whose process is not known by name.
func (e Executor) String() string { return e.At("") }

// At returns the text for people: "host:pid:token:claim", after "pop:" where a pop handed the task out. The process is
// "host:pid", or "" where that is not known.
func (e Executor) At(process string) string {
	if e == (Executor{}) {
		return ""
	}
	text := e.Token() + ":" + strconv.FormatInt(max(e.Claim, -e.Claim), 10)
	if process != "" {
		text = process + ":" + text
	}
	if e.Popped() {
		return "pop:" + text
	}
	return text
}

// ParseExecutor reads the text that [Executor.At] returns. It returns false for any other text.
func ParseExecutor(text string) (e Executor, ok bool) {
	text, popped := strings.CutPrefix(text, "pop:")
	parts := strings.Split(text, ":")
	if len(parts) < 2 { // a host may hold colons
		return Executor{}, false
	}
	process, isToken := ProcessOf(parts[len(parts)-2])
	claim, err := strconv.ParseInt(parts[len(parts)-1], 10, 64)
	e = Executor{process, claim}
	if popped {
		e = e.ForPop()
	}
	return e, isToken && err == nil && claim > 0
}

// Process is one row of delay_task_process: what people call a process that has claimed tasks.
type Process struct {
	ID   int64 // as [Executor] has it
	Name string
	PID  int
}

// String returns the text that [Executor.At] takes.
func (p Process) String() string { return p.Name + ":" + strconv.Itoa(p.PID) }
