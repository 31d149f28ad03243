package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/test/chaos/audit"
)

// user is whom the processes connect as: one without the power to write while the server is read-only.
const user = "chaos"

// setServer starts a server of the run's own and prepares a database on it.
func (s *stage) setServer(ctx context.Context) (err error) {
	in, err := s.setDisk(ctx)
	if err != nil {
		return err
	}
	v, err := dbtest.NewVictim(ctx, s.opts.server, in)
	if err != nil {
		return err
	}
	s.later(v.Close)
	s.world.Server = v
	db, _, err := v.Source().Create(ctx)
	if err != nil {
		return err
	}
	sch, err := delaytask.Open(ctx, db.DSN, delaytask.Config{Migrate: true})
	if err != nil {
		return err
	}
	if err := sch.Stop(ctx); err != nil {
		return err
	}
	if s.cfg, err = mysql.ParseDSN(db.DSN); err != nil {
		return err
	}
	connector, err := mysql.NewConnector(s.cfg)
	if err != nil {
		return err
	}
	s.world.Admin = sql.OpenDB(connector)
	s.later(s.world.Admin.Close)
	for _, statement := range []string{
		"CREATE TABLE chaos_ballast (content LONGTEXT NOT NULL)",
		"CREATE USER '" + user + "'@'%' IDENTIFIED BY ''", "GRANT ALL ON `" + s.cfg.DBName + "`.* TO '" + user + "'@'%'",
	} {
		if _, err := s.world.Admin.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	s.cfg = s.cfg.Clone()
	s.cfg.User, s.world.User = user, user
	return errors.Join(lateness.SameClock(ctx, s.world.Admin), audit.Install(ctx, s.world.Admin))
}

// setDisk mounts a small disk of memory for the server's data, where the run asks for one. It returns the folder for the data.
func (s *stage) setDisk(ctx context.Context) (string, error) {
	if s.opts.disk == 0 {
		return s.opts.in, nil
	}
	in := filepath.Join(s.dir, "disk")
	out, err := exec.CommandContext(ctx, "mount", "-o", fmt.Sprintf("X-mount.mkdir,size=%dm", s.opts.disk), "-t", "tmpfs",
		"tmpfs", in).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("mount a disk, which wants root: %w: %s", err, out)
	}
	s.later(func() error { return exec.CommandContext(context.WithoutCancel(ctx), "umount", in).Run() })
	s.world.Disk = in
	return in, nil
}
