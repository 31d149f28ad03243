package bench

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/nodebench"
)

const (
	fleetSize  = 3
	fleetLimit = time.Minute // for processes to be there, on a machine that does other things
)

// nodeChild is one of several processes.
func nodeChild(ctx context.Context, o order, t *child.Teller) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return nodebench.Serve(ctx, o.DSN, o.Tag, log, t)
}

// withFleet starts n processes that serve the tag, and gives them to f when they are ready to go. What f does not stop
// is killed.
func (r *run) withFleet(
	ctx context.Context, d *database, tag string, n int, f func(context.Context, *nodebench.Fleet) error,
) error {
	fleet := nodebench.NewFleet(fleetLimit, func(ctx context.Context) (*child.Process[nodebench.Event], error) {
		return startChild[nodebench.Event](ctx, r, order{Role: "node", DSN: d.dsn, Tag: tag})
	})
	defer fleet.Kill()
	if err := fleet.Start(ctx, n); err != nil {
		return err
	}
	return f(ctx, fleet)
}

// addShares adds how evenly the processes shared the work, and how much of it they did for nothing.
func (f *figures) addShares(key string, fleet *nodebench.Fleet) {
	ran, claims := fleet.Counts()
	f.add(key+".spread_pct", nodebench.Spread(ran))
	f.add(key+".wasted_pct", nodebench.Wasted(claims))
}

// ranBy returns when the fleet has begun so many tasks, or when the time is up: what is missing then is for the judge.
func ranBy(ctx context.Context, fleet *nodebench.Fleet, want int, limit time.Duration) error {
	waiting, cancel := context.WithTimeoutCause(ctx, limit, errTimeIsUp)
	defer cancel()
	if err := fleet.Ran(waiting, want); !errors.Is(err, errTimeIsUp) {
		return err
	}
	return nil
}

var errTimeIsUp = errors.New("the time is up")
