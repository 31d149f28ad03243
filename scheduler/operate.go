package scheduler

import (
	"context"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/report"
)

// Tags returns every tag that a live node serves or that is paused, sorted by tag. It reads no tasks and is cheap.
// Other tags with tasks are only in Stats.
func (s *Scheduler) Tags(ctx context.Context) ([]report.TagState, error) { return s.core.Tags(ctx) }

// Pause stops all nodes from starting tasks of the tag, within 2 s. Running tasks go on. Tasks that fall due meanwhile
// wait. It takes [delaytask.Reason].
func (s *Scheduler) Pause(ctx context.Context, tag string, opts ...delaytask.PauseOption) error {
	return s.core.Pause(ctx, tag, opts...)
}

// Resume ends a pause on all nodes, within 2 s. Tasks that fell due meanwhile start at once.
func (s *Scheduler) Resume(ctx context.Context, tag string) error { return s.core.Resume(ctx, tag) }

// Wake tells all processes that rows of the tags may be due now or soon that they do not know of. A program that
// inserts rows by SQL of its own calls it after the commit. Otherwise they start up to 0.6 s late. It does not wait.
//
// It returns [delaytask.ErrInvalidTag].
func (s *Scheduler) Wake(ctx context.Context, tags ...string) error { return s.core.Wake(ctx, tags...) }

// Nodes returns the processes that share the database, by number. A dead one is listed until its number is needed.
func (s *Scheduler) Nodes(ctx context.Context) ([]report.Node, error) {
	nodes, _, err := s.core.Nodes(ctx)
	return nodes, err
}
