package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	pulledTag    = "proof.pulled"
	pushedTag    = "proof.pushed"
	serviceTasks = 200 // of each tag
	serviceSpan  = 4 * time.Second
	serviceDelay = 2 * time.Second
	pullers      = 4
	serviceDrain = 30 * time.Second
	serviceAim   = 20 * time.Millisecond
)

// serviceProof lets a process that serves as `delaytask serve` does hand tasks to workers that pull, and call a receiver, which are
// in this one.
func serviceProof(ctx context.Context, t *trial) error {
	p, err := startChild[serviceEvent](ctx, order{Role: "service", DSN: t.db.DSN})
	if err != nil {
		return err
	}
	var url string
	p.Listen(serviceDrain, func(e serviceEvent) bool {
		url = e.URL
		return false
	})
	if url == "" {
		return errors.Join(errors.New("the service did not start"), p.Stop(func(serviceEvent) {}))
	}
	n := t.count(serviceTasks)
	pulled, pushed := lateness.NewStarts(n), lateness.NewStarts(n)
	err = errors.Join(runService(ctx, t, api(url), n, pulled, pushed), p.Stop(func(serviceEvent) {}))
	if err != nil {
		return err
	}
	for _, way := range []struct {
		tag, what string
		seen      *lateness.Starts
	}{{pulledTag, "a worker that pulls", pulled}, {pushedTag, "a receiver that is called", pushed}} {
		tasks, err := t.tasks(ctx, way.tag)
		if err != nil {
			return err
		}
		j := lateness.Judge(tasks, way.seen, 0)
		t.promise(way.what+" had tasks exactly once", of(j.Once, n), "all", j.Once == n)
		t.promise(way.what+" had tasks early", fmt.Sprint(j.Early), "0", j.Early == 0)
		t.aim(way.what+" had them: lateness p50 / p99 / max", late(j.Starts).String(), "p99 < "+milliseconds(serviceAim),
			late(j.Starts).percentile(99) < serviceAim)
	}
	return nil
}

// runService saves tasks of both tags and waits until they have arrived.
func runService(ctx context.Context, t *trial, service api, n int, pulled, pushed *lateness.Starts) (err error) {
	address, stop, err := receive(ctx, pushed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	register := wire.Register{App: "proof", Address: address, Tags: []string{pushedTag}, TTL: wire.Duration(time.Minute)}
	if err := service.post(ctx, "/v1/workers", register, nil); err != nil {
		return err
	}
	pulling, end := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer end()
	for range pullers {
		workers.Go(func() { service.pull(pulling, t, pulled) })
	}
	t.say("%d tasks are pulled and as many pushed", n)
	for i, moment := range lateness.Moments(n, serviceSpan) {
		for _, tag := range []string{pulledTag, pushedTag} {
			delay := wire.Duration(serviceDelay + moment)
			if err := service.post(ctx, "/v1/tasks", wire.Save{Tag: tag, Delay: &delay}, nil); err != nil {
				return fmt.Errorf("save task %d of %s: %w", i, tag, err)
			}
		}
	}
	return errors.Join(pulled.Wait(ctx, serviceDrain), pushed.Wait(ctx, serviceDrain))
}

// pull is a worker. What it has popped it finishes, also when its ctx has ended.
func (a api) pull(ctx context.Context, t *trial, seen *lateness.Starts) {
	for ctx.Err() == nil {
		var reply wire.PopReply
		err := a.post(ctx, "/v1/tags/"+pulledTag+"/pop?wait=5s&max=10", nil, &reply)
		at := time.Now()
		for _, task := range reply.Tasks {
			seen.Add(int64(task.ID), at)
			if err == nil {
				err = a.post(context.WithoutCancel(ctx), "/v1/tasks/"+task.ID.String()+"/finish", wire.Finish{Token: task.Token}, nil)
			}
		}
		if err != nil && ctx.Err() == nil {
			t.say("a worker ends: %v", err)
			return
		}
	}
}

// receive is an address that notes its calls.
func receive(ctx context.Context, seen *lateness.Starts) (url string, stop func() error, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		token, err := delaytask.ParseToken(r.Header.Get("Delaytask-Token"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		seen.Add(token.ID, at)
	})}
	go func() { _ = server.Serve(l) }() // it ends with Close
	return "http://" + l.Addr().String() + "/", server.Close, nil
}
