// Package audit records what people change: an entry is stored before the act, and its outcome after it. Without an
// entry there is no act, unless the database has no table for entries.
package audit
