package row

import (
	"bytes"
	"encoding/json"
)

const (
	maxAttempts     = 10
	maxAttemptError = 1 << 10 // bytes
)

// AppendAttempt returns the errors column with a at its end: a JSON array of the last 10 attempts, each error at most 1
// KiB. The column is open to anybody's SQL, so what is not a JSON array is dropped rather than allowed to block the
// task.
func AppendAttempt(existing []byte, a Attempt) []byte {
	a.Error = Clip(a.Error, maxAttemptError)
	a.Executor = Clip(a.Executor, maxAttemptError)

	var attempts []json.RawMessage // raw: entries of a newer version keep fields that this one does not know
	if err := json.Unmarshal(existing, &attempts); err != nil {
		attempts = nil
	}
	attempts = append(attempts, encode(a))
	attempts = attempts[max(0, len(attempts)-maxAttempts):]
	return encode(attempts)
}

// encode writes JSON that people read in a database client: <, > and & stay as they are.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only a time outside the years 0 to 9999 can be refused, and no such time is ever stored.
		return []byte("null")
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
