// Package history records what a process asks a store for, and what it is told: each call and each return of a claim, a settle, a
// rescue, a cancel, a reschedule or a read, as events of package journal, one for each task. Package linear says whether some
// order of what was done explains all that was told.
package history
