package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/scheduler"
	"github.com/delaytask/delaytask/test/system/chaos/audit"
)

// user is the account of the processes: it may not write while the server is read-only.
const user = "chaos"

// setServer starts a server of the run's own and prepares a database on it.
func (s *stage) setServer(ctx context.Context) (err error) {
	db, err := s.startServer(ctx)
	if err != nil {
		return err
	}
	s.server = db.Server + clockName(s.opts)
	if s.opts.single {
		db.DSN = db.Members[0] // which is the first primary
	}
	sch, err := scheduler.Open(ctx, db.DSN, scheduler.Config{Migrate: true})
	if err != nil {
		return err
	}
	if err := errors.Join(s.saveSchedules(ctx, sch), sch.Stop(ctx)); err != nil {
		return err
	}
	if s.cfg, err = mysql.ParseDSN(db.DSN); err != nil {
		return err
	}
	if s.world.Admin, err = s.admin(db); err != nil {
		return err
	}
	if s.world.Hand, err = s.hand(db); err != nil {
		return err
	}
	for _, statement := range []string{
		"CREATE TABLE chaos_ballast (id BIGINT AUTO_INCREMENT PRIMARY KEY, content LONGTEXT NOT NULL)",
		"CREATE USER '" + user + "'@'%' IDENTIFIED BY ''",
		"GRANT ALL ON `" + s.cfg.DBName + "`.* TO '" + user + "'@'%'",
	} {
		if _, err := s.world.Admin.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	s.cfg = s.cfg.Clone()
	s.cfg.User, s.world.User = user, user
	if err := s.setClock(ctx); err != nil {
		return err
	}
	if err := audit.Install(ctx, s.world.Admin); err != nil {
		return err
	}
	return s.setMembers(ctx, db)
}

// admin is the pool past all proxies: on the primary of a group with one, otherwise on any member of a cluster.
func (s *stage) admin(db dbtest.Database) (*sql.DB, error) {
	if s.opts.single {
		return s.primaryPool(db.DSN)
	}
	return s.pool(db.Spread().DSN)
}

// hand is the pool for changes of rows by hand. It does not wait for what other members have committed: MySQL 9.7 waits
// for that at the trigger's statement again, with the row locked, and for ever when the member has to apply a change of
// this row.
func (s *stage) hand(db dbtest.Database) (*sql.DB, error) {
	if db.Members == nil || s.opts.single {
		return s.world.Admin, nil
	}
	cfg, err := mysql.ParseDSN(db.Spread().DSN)
	if err != nil {
		return nil, err
	}
	cfg.Params = nil
	return s.pool(cfg.FormatDSN())
}

// setMembers waits until each member of a cluster keeps the audit. A server alone is its only member.
func (s *stage) setMembers(ctx context.Context, db dbtest.Database) error {
	if db.Members == nil {
		s.addrs = []string{s.cfg.Addr}
	}
	for _, dsn := range db.Members {
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil {
			return err
		}
		s.addrs = append(s.addrs, cfg.Addr)
		member, err := s.pool(dsn)
		if err != nil {
			return err
		}
		s.members = append(s.members, member)
		if err := audit.Await(ctx, member); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) startServer(ctx context.Context) (db dbtest.Database, err error) {
	if s.opts.server.Cluster() {
		if s.world.Members, err = dbtest.NewCluster(ctx, s.opts.server, s.opts.single); err != nil {
			return db, err
		}
		s.later(s.world.Members.Close)
		return s.world.Members.Create(ctx)
	}
	in, err := s.setDisk(ctx)
	if err != nil {
		return db, err
	}
	var env []string
	if s.opts.wrongClock() {
		wrong := fmt.Sprintf("FAKETIME=%+f x%f", s.opts.ahead.Seconds(), 1+s.opts.slew)
		if env, err = clockEnv(wrong); err != nil {
			return db, err
		}
	}
	if s.world.Server, err = dbtest.NewSupervised(ctx, s.opts.server, in, env...); err != nil {
		return db, err
	}
	s.later(s.world.Server.Close)
	return s.world.Server.Create(ctx)
}

// spare ends the servers and keeps their data and logs.
func (s *stage) spare(path string) error {
	if s.world.Members != nil {
		return s.world.Members.Spare(path)
	}
	return s.world.Server.Spare(path)
}

// pool is closed with the stage.
func (s *stage) pool(dsn string) (*sql.DB, error) {
	db, err := sql.Open("mysql", dsn)
	if err == nil {
		s.later(func() error {
			_ = db.Close() // its connections may have ended with their server
			return nil
		})
	}
	return db, err
}

// setDisk mounts a small disk of memory for the server's data, if the run asks for one, and returns the folder for the
// data.
func (s *stage) setDisk(ctx context.Context) (string, error) {
	if s.opts.disk == 0 {
		return s.opts.in, nil
	}
	in := filepath.Join(s.dir, "disk")
	options := fmt.Sprintf("X-mount.mkdir,size=%dm", s.opts.disk)
	out, err := exec.CommandContext(ctx, "mount", "-o", options, "-t", "tmpfs", "tmpfs", in).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("mount a disk, which wants root: %w: %s", err, out)
	}
	s.later(func() error { return exec.CommandContext(context.WithoutCancel(ctx), "umount", in).Run() })
	s.world.Disk = in
	return in, nil
}
