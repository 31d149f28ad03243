package main

import (
	"context"
	"fmt"
)

// candidate is an index that could lead to the rows that need attention.
type candidate struct {
	name  string
	alter string // changes the index that the migrations make
	// due is the column of the index that tells when a row needs attention.
	due string
	// perTag: tag stands before the time, so rows are read tag by tag.
	perTag bool
	// nullWhenFinal: finished rows have no due_time and so leave the part of the index that is read.
	nullWhenFinal bool
	// byStatus: the index leads to the rows of one status, whatever their tag.
	byStatus bool
}

// dueKey is what every candidate's index is called, so that all are forced alike.
const dueKey = "delay_task_message_due"

func replaceIndex(columns string) string {
	return "ALTER TABLE delay_task_message DROP INDEX " + dueKey + ", ADD INDEX " + dueKey + " (" + columns + ")"
}

var candidates = []candidate{
	{name: "status, tag, due_time", due: "due_time", perTag: true, byStatus: true},
	{name: "status, due_time", alter: replaceIndex("status, due_time"), due: "due_time", byStatus: true},
	{name: "tag, status, due_time", alter: replaceIndex("tag, status, due_time"), due: "due_time", perTag: true},
	{name: "due_time, NULL when final", alter: replaceIndex("due_time"), due: "due_time", nullWhenFinal: true},
	// It replaces the index on expected_time as well, of which it is an extension.
	{name: "expected_time, status", alter: replaceIndex("expected_time, status") + ", DROP INDEX delay_task_message_expected",
		due: "expected_time"},
}

func (c candidate) prepare(ctx context.Context, b *bench) error {
	if c.alter == "" {
		return nil
	}
	if _, err := b.db.ExecContext(ctx, c.alter); err != nil {
		return fmt.Errorf("make the index (%s): %w", c.name, err)
	}
	return nil
}
