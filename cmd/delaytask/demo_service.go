package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// order is what the demo tells its service, which stops when the demo ends.
type order struct {
	DSN  string
	Save bool // save the tasks of the script first
}

// event is what the service tells.
type event struct {
	Kind    eventKind
	Name    string // of the scene
	ID      int64
	Due, At time.Time // At is by this machine's clock
	Error   string
	Worker  int // pid
}

type eventKind int

const (
	eventSaved eventKind = iota
	eventReady
	eventStarted
	eventEnded
)

// workerCommand is the service of the demo: a process that can be killed.
func (a *app) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "The demo's service (started by the demo)",
		Hidden: true,
		Args:   wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return child.Serve(cmd.Context(), a.stdin, a.stdout,
				func(ctx context.Context, o order, n *child.Narrator) (err error) {
					s, err := scheduler.Open(ctx, o.DSN, scheduler.Config{Logger: a.logger(config.Log{Level: "error"})})
					if err != nil {
						return err
					}
					return errors.Join((&worker{o, n, s}).serve(ctx), s.Stop(context.WithoutCancel(ctx)))
				})
		},
	}
}

type worker struct {
	order
	*child.Narrator
	*scheduler.Scheduler
}

// serve runs the tasks until ctx ends, which is when the demo closes the input.
func (w *worker) serve(ctx context.Context) error {
	for _, tag := range tags() {
		err := w.Register(tag, processor.Func(w.process), processor.RetryBackoff(processor.Constant(mailBackoff)))
		if err != nil {
			return err
		}
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	for i := range script {
		if !w.Save || script[i].plainSQL {
			continue
		}
		id, err := w.save(ctx, &script[i])
		if err != nil {
			return err
		}
		w.Tell(event{Kind: eventSaved, Name: script[i].Name, ID: id})
	}
	w.Tell(event{Kind: eventReady})
	<-ctx.Done()
	return nil
}

// save saves a task, or a schedule that ticks for the first time in one to two seconds.
func (w *worker) save(ctx context.Context, s *scene) (id int64, err error) {
	body := map[string]string{"name": s.Name}
	if s.every != 0 {
		first := time.Duration(time.Now().Add(2*time.Second).Unix()) * time.Second
		when := delaytask.Spec{Lines: []string{fmt.Sprintf("@every %v/%v", s.every, first%s.every)}}
		_, err := w.SaveSchedule(ctx, s.Name, when, s.Tag, body, delaytask.WithMaxRuns(len(s.notes)))
		return 0, err
	}
	options := []delaytask.Option{delaytask.WithKey(s.Name)}
	if s.killed {
		options = append(options, delaytask.WithTTR(reportLease))
	}
	return w.SaveDelayTask(ctx, s.Tag, body, s.Delay, options...)
}

// process reads the clock first: the demo judges by it whether the task started in time.
func (w *worker) process(ctx context.Context, task *delaytask.Task) error {
	at := time.Now()
	var body struct{ Name string }
	if err := json.Unmarshal(task.Body, &body); err != nil {
		return processor.Permanent(err)
	}
	e := event{Kind: eventStarted, Name: body.Name, ID: task.ID, Due: task.Due, At: at}
	w.Tell(e)
	var err error
	switch {
	case task.Tag == "mail.send" && task.Attempt <= 2:
		err = errors.New("the mail server is busy")
	case task.Tag == "report.build" && !lifecycle.Sleep(ctx, reportTakes):
		err = context.Cause(ctx)
	}
	e.Kind = eventEnded
	if err != nil {
		e.Error = err.Error()
	}
	w.Tell(e)
	return err
}
