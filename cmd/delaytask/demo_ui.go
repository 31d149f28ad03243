package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/server/signin"
)

// demoPages serves the dashboard of a shop until ctx ends.
func (a *app) demoPages(ctx context.Context, dsn string, port int) error {
	switch {
	case a.json:
		return misusedf("--ui has no result that could be JSON: leave out --json")
	case port < 0 || port > 65535:
		return misusedf("--port %d: want 0, for a free one, to 65535", port)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	c := config.Default()
	c.DSN, c.Secret, c.Node.Name, c.StopGrace = dsn, rand.Text(), "service", demoGrace
	c.Server.Listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	service, err := server.Open(ctx, c, a.logger(config.Log{Level: "error"}))
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() {
		defer end()
		served <- service.Run(ctx)
	}()
	err = keepShop(ctx, dsn, service.URL(), func() { a.sayWhere(service.URL()+signin.Root, dsn) })
	end()
	if errors.Is(err, context.Canceled) { // by a signal amid the start
		err = nil
	}
	return errors.Join(err, <-served)
}

// sayWhere prints the address, on a line of its own. The demo works without a reader.
func (a *app) sayWhere(url, dsn string) {
	_ = a.printf(`A shop saves tasks and runs them. Its dashboard is at

%s

Look first at
  1. the top of the page: tasks that are late or fail, since when and why, and the command that helps.
  2. the charts: how late tasks started in the last hour, and how many fall due in the next one.
  3. a tag: newsletter.send is paused, and no process serves video.encode. Resume the one, explain a task of the other.
No login protects it: every user of this machine can open it. The hour before the start is made up, in
%s. Ctrl-C ends the demo and deletes that.
`, url, strings.TrimPrefix(dsn, "sqlite:"))
}
