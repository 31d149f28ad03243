package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
)

const (
	dbRestartBefore = 5 * time.Second
	dbRestartAfter  = 30 * time.Second // longer than a lease: one may have to end
	dbRestartOnTime = 500 * time.Millisecond
)

// nodesDBRestart restarts the database under as many processes and tasks a second as -nodes and -load say. It knows no
// way of its own: a server that it has not started is not to be killed by guess.
func (o *options) nodesDBRestart() bench.Measurement {
	const key = "nodes.dbrestart"
	return bench.Measurement{
		Name: key, Apart: true, Turns: 1,
		Figures: append(lateFigures(key, fmt.Sprintf("start behind the due time at %d a second in %d processes, from "+
			"the begin of the restart on", o.load, o.nodes)),
			bench.Figure{key + ".took_ms", "the command of -db-restart"},
			bench.Figure{key + ".on_time_ms", "from its end until no task is half a second late any more"},
			bench.Figure{key + ".attempts_burned", aboutBurned},
			bench.Figure{key + ".wasted_pct", aboutWasted}),
		Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			if o.dbRestart == "" {
				return bench.LeftOut("-db-restart names no command that restarts the server")
			}
			return withFleet(ctx, d, bench.LateTag, o.nodes, func(ctx context.Context, nodes *fleet) error {
				return o.restartDatabase(ctx, r, d, nodes)
			})
		}),
	}
}

func (o *options) restartDatabase(ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet) error {
	if err := nodes.serve(ctx); err != nil {
		return err
	}
	before, after := r.Lasting(dbRestartBefore), r.Lasting(dbRestartAfter)
	apart := time.Second / time.Duration(o.load)
	n := int((before + after) / apart)
	begins, err := fillAhead(ctx, r, d, n, bench.Filling{Tag: bench.LateTag, Apart: apart})
	if err := errors.Join(err, lateness.Pass(ctx, time.Until(begins)+before)); err != nil {
		return err
	}
	from := time.Now()
	if said, err := exec.CommandContext(ctx, "sh", "-c", o.dbRestart).CombinedOutput(); err != nil {
		return fmt.Errorf("restart the database: %w: %s", err, said)
	}
	back := time.Now()
	err = allRan(ctx, d, nodes, n, after)
	if err := errors.Join(err, nodes.stop(o.nodes)); err != nil {
		return err
	}
	tasks, err := d.TasksOf(ctx, bench.LateTag)
	if err != nil {
		return err
	}
	r.Add("nodes.dbrestart.took_ms", bench.Milliseconds(back.Sub(from)))
	addSteady(r, "nodes.dbrestart", tasks, n, from, begins.Add(before+after), nodes)
	onTime, is := onTimeFrom(dueBetween(tasks, from, time.Now()), nodes.starts(n), dbRestartOnTime)
	if !is {
		return leftOut("tasks were not on time again before the end of the measurement")
	}
	r.Add("nodes.dbrestart.on_time_ms", bench.Milliseconds(max(0, onTime.Sub(back))))
	return nil
}
