package delaytask

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/processor"
)

// Pause stops all nodes from starting tasks of the tag, within 2 s; what runs goes on. Tasks that fall due meanwhile wait.
func (s *Scheduler) Pause(ctx context.Context, tag string) error {
	return s.setPause(ctx, tag, "pause", s.engine.Pause)
}

// Resume ends a pause on all nodes, within 2 s. Tasks that fell due meanwhile start at once.
func (s *Scheduler) Resume(ctx context.Context, tag string) error {
	return s.setPause(ctx, tag, "resume", s.engine.Resume)
}

func (s *Scheduler) setPause(ctx context.Context, tag, op string, set func(context.Context, string) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if !processor.ValidTag(tag) {
		return fmt.Errorf("%w: got %.140q", ErrInvalidTag, tag)
	}
	if err := set(ctx, tag); err != nil {
		return fmt.Errorf("%s tag %s: %w", op, tag, err)
	}
	return nil
}
