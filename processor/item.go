package processor

import "time"

// Item is one task of a bulk save, with the arguments of SaveDelayTask.
type Item struct {
	Tag     string
	Body    any
	Delay   time.Duration
	Options []Option
}

// SaveResult is what became of one item of a bulk save.
type SaveResult struct {
	ID  int64 // of the task, or for ErrDuplicate of the one that carries the key; 0 with any other error
	Err error // as SaveDelayTask returns it, or ErrChunkRefused

	// Chunk is the number of its chunk in the bulk save, from 0: tasks with the same number are stored together or not at
	// all.
	Chunk int
}

// MaxItems is how many tasks one bulk save takes.
const MaxItems = 10_000
