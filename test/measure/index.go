package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// measureIndexes times a batch's life and the reads beside it with every candidate for the index, on tables of several shapes.
func measureIndexes(ctx context.Context, s settings) error {
	for _, shape := range shapes {
		if !strings.Contains(shape.name, s.table) {
			continue
		}
		if err := measureShape(ctx, s, shape); err != nil {
			return fmt.Errorf("on a table with %s: %w", shape.name, err)
		}
	}
	return nil
}

func measureShape(ctx context.Context, s settings, shape shape) (err error) {
	spent := make(timings)
	var cycles []*cycle
	defer func() {
		for _, c := range cycles {
			err = errors.Join(err, c.drop(ctx))
		}
	}()
	now := row.At(time.Now())
	for i, candidate := range candidates {
		b, err := newBench(ctx, s.dsn, fmt.Sprint("index", i))
		if err != nil {
			return err
		}
		cycles = append(cycles, &cycle{bench: b, candidate: candidate, tags: shape.served(), firstID: 10_000_000, spent: spent})
		if err := candidate.prepare(ctx, b); err != nil {
			return err
		}
		if err := shape.fill(ctx, b, candidate, s.rows, now); err != nil {
			return fmt.Errorf("fill the table: %w", err)
		}
		progress("%s: filled for (%s)", shape.name, candidate.name)
	}
	for round := range s.rounds + 1 {
		for _, c := range cycles {
			if err := c.run(ctx); err != nil {
				return err
			}
			c.firstID += batchRows
		}
		if round == 0 {
			clear(spent) // the first meets cold caches and statistics
		}
	}
	text, err := cycles[0].describe(ctx)
	if err != nil {
		return err
	}
	columns := names(candidates, func(c candidate) string { return c.name })
	return report(text, s.rounds, spent.table(shape.name, operations, columns))
}
