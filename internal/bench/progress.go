package bench

import (
	"context"
	"time"
)

// Progress is how far a run has come.
type Progress struct {
	Name        string // of what is measured now; empty at the end
	Turn, Turns int    // from 1
	Done, Total time.Duration
}

const progressEvery = 200 * time.Millisecond

// during calls f and tells of its progress meanwhile: it is expected to take so long.
func (p Progress) during(ctx context.Context, tell func(Progress), takes time.Duration, f func(context.Context) error) error {
	result := make(chan error, 1)
	began := time.Now()
	go func() { result <- f(ctx) }()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	done := p.Done
	for {
		tell(p)
		select {
		case err := <-result:
			return err
		case <-ticker.C:
			p.Done = done + min(time.Since(began), takes)
		}
	}
}
