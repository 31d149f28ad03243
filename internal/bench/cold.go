package bench

import (
	"context"
	"errors"
	"time"
)

// cold measures what the first reader after a restart of the server waits for. The benchmark cannot restart a server
// that is not its own: its caller does, before the run.
var cold = measurement{
	name: "cold", apart: true, once: true, figures: coldFigures(),
	takes: func(workload) time.Duration { return onFreshTakes + 5*time.Second },
	measure: onFilled(func(ctx context.Context, r *run, d *database) error {
		return r.withReader(ctx, d, func(ctx context.Context, u *uiReader) error {
			for _, read := range uiReads {
				took, err := read.timed(ctx, u)
				switch {
				case errors.Is(err, errNoNext):
				case err != nil:
					return err
				default:
					r.figures.add("cold."+read.name+"_ms", milliseconds(took))
				}
			}
			return nil
		})
	}),
}

func coldFigures() []figure {
	var figures []figure
	for _, r := range uiReads {
		figures = append(figures, figure{"cold." + r.name + "_ms", r.about + ", once"})
	}
	return figures
}
