package main

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"
)

// offset is how far a server's clock is ahead of this machine's: between least and most. Workers tell when they started by the
// clock of this machine, tasks are due by the server's.
type offset struct{ least, most time.Duration }

const offsetReadings = 10

// measureOffset narrows the bounds with every reading: the server looked at its clock between the request and the reply.
func measureOffset(ctx context.Context, db *sql.DB) (offset, error) {
	bounds := offset{least: math.MinInt64, most: math.MaxInt64}
	for range offsetReadings {
		var text string
		sent := time.Now()
		err := db.QueryRowContext(ctx, "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)").Scan(&text)
		received := time.Now()
		if err != nil {
			return offset{}, fmt.Errorf("read the server's clock: %w", err)
		}
		server, err := time.Parse("2006-01-02 15:04:05.000000", text)
		if err != nil {
			return offset{}, fmt.Errorf("read the server's clock: %w", err)
		}
		bounds.least = max(bounds.least, server.Sub(received))
		bounds.most = min(bounds.most, server.Sub(sent))
	}
	return bounds, nil
}

// late is the best guess of how long after due a moment of this machine was.
func (o offset) late(at, due time.Time) time.Duration {
	return max(at.Sub(due)+o.middle(), 0)
}

// early reports whether a moment of this machine was certainly before due.
func (o offset) early(at, due time.Time) bool { return at.Add(o.most).Before(due) }

func (o offset) middle() time.Duration { return o.least + (o.most-o.least)/2 }
