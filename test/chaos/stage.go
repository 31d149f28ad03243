package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/journal"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/test/chaos/audit"
	"github.com/delaytask/delaytask/test/chaos/fault"
	"github.com/delaytask/delaytask/test/chaos/fleet"
	"github.com/delaytask/delaytask/test/chaos/proxy"
	"github.com/delaytask/delaytask/test/chaos/role"
)

// stage is what a run happens on.
type stage struct {
	opts     options
	progress io.Writer
	dir      string
	begun    time.Time
	cfg      *mysql.Config // of the run's database
	world    *fault.World
	closing  []func() error
}

// set makes a server, a database with its audit, and all the processes.
func set(ctx context.Context, opts options, progress io.Writer) (s *stage, err error) {
	s = &stage{opts: opts, progress: progress, begun: time.Now(), world: &fault.World{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp(opts.in, "delaytask-chaos-"); err != nil {
		return s, err
	}
	if err := s.setServer(ctx); err != nil {
		return s, err
	}
	own, err := journal.Create(filepath.Join(s.dir, "injector.journal"))
	if err != nil {
		return s, err
	}
	s.later(own.Close)
	s.world.Fleet = &fleet.Fleet{Dir: s.dir, Journal: own}
	for i := range opts.workers {
		o := role.Order{Role: role.Worker, Tags: role.Tags}
		if i == 0 && opts.workers > 1 {
			o.Tags = role.Harmless
		}
		if err := s.add(ctx, fmt.Sprint("worker", i), o); err != nil {
			return s, err
		}
	}
	for i := range opts.savers {
		o := role.Order{Role: role.Saver, Rate: opts.rate / opts.savers}
		if i == 0 && opts.only == "" {
			o.DeathEvery, o.Poisons = deathEvery, 1
		}
		if err := s.add(ctx, fmt.Sprint("saver", i), o); err != nil {
			return s, err
		}
	}
	return s, s.awaitAll(ctx)
}

const (
	deathEvery = 4 * time.Second
	beginsIn   = 2 * time.Minute // on a machine that is busy with other things
)

func (s *stage) setServer(ctx context.Context) (err error) {
	v, err := dbtest.NewVictim(ctx, s.opts.server, s.opts.in)
	if err != nil {
		return err
	}
	s.later(v.Close)
	s.world.Server = v
	db, _, err := v.Source().Create(ctx)
	if err != nil {
		return err
	}
	if s.cfg, err = mysql.ParseDSN(db.DSN); err != nil {
		return err
	}
	sch, err := delaytask.Open(ctx, db.DSN, delaytask.Config{Migrate: true})
	if err != nil {
		return err
	}
	if err := sch.Stop(ctx); err != nil {
		return err
	}
	connector, err := mysql.NewConnector(s.cfg)
	if err != nil {
		return err
	}
	s.world.Admin = sql.OpenDB(connector)
	s.later(s.world.Admin.Close)
	return errors.Join(lateness.SameClock(ctx, s.world.Admin), audit.Install(ctx, s.world.Admin))
}

// add fills a place with a process that has a way to the database of its own.
func (s *stage) add(ctx context.Context, name string, o role.Order) error {
	p, err := proxy.New(context.WithoutCancel(ctx), "127.0.0.1:0", s.cfg.Addr)
	if err != nil {
		return err
	}
	s.later(p.Close)
	cfg := s.cfg.Clone()
	cfg.Addr = p.Addr()
	o.DSN, o.Seed = cfg.FormatDSN(), s.opts.seed
	s.world.Fleet.Add(context.WithoutCancel(ctx), &fleet.Slot{Name: name, Proxy: p}, o)
	return nil
}

func (s *stage) awaitAll(ctx context.Context) error {
	for _, r := range []string{role.Worker, role.Saver} {
		for _, slot := range s.world.Fleet.Of(r) {
			if err := slot.Await(ctx, beginsIn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stage) later(f func() error) { s.closing = append(s.closing, f) }

// close ends what is left, the last first.
func (s *stage) close() error {
	var errs []error
	if s.world.Fleet != nil {
		errs = append(errs, s.world.Fleet.End())
	}
	for i := len(s.closing) - 1; i >= 0; i-- {
		errs = append(errs, s.closing[i]())
	}
	s.closing = nil
	return errors.Join(errs...)
}

func (s *stage) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.progress, "%7.2fs %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}
