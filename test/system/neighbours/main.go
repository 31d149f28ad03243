// Command neighbours measures what a process loses while another program holds a lock on its tables. Ten tags have a
// steady load. Each neighbour of the table in neighbour.go is measured beside it: first a quiet span, then the same
// load while the neighbour's transaction is open.
//
//	neighbours -server mysql -only cancel,archive   two neighbours on a private MySQL
//	neighbours -dsn 'root@tcp(127.0.0.1:3306)/'     all of them, in a database of their own on that server
//	neighbours -list                                their names
//
// Run it by go -C test/system run ./neighbours.
//
// It prints a line of a Markdown table for each neighbour, and exits with 1 when one of them breaks the floor (see
// judge.go), with 3 when it could not measure.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/test/lab/record"
)

const (
	exitBroken   = 1
	exitWrongUse = 2
	exitUnjudged = 3
)

var errBroken = errors.New("a neighbour breaks the floor")

type options struct {
	held, quiet time.Duration
	servers     []string
	dsn         string
	only        []string
	json, list  bool
	in          string
	log         *slog.Logger
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, cancel) // a second signal kills the program
	opts, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(exitWrongUse)
	}
	if err = mysql.SetLogger(&mysql.NopLogger{}); err == nil { // a moved address cuts connections on purpose
		err = measureAll(ctx, opts, os.Stdout)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "neighbours:", err)
		if errors.Is(err, errBroken) {
			os.Exit(exitBroken)
		}
		os.Exit(exitUnjudged)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var opts options
	var servers, only string
	var verbose bool
	flags := flag.NewFlagSet("neighbours", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&opts.held, "for", 20*time.Second, "how `long` each transaction stays open")
	flags.DurationVar(&opts.quiet, "quiet", 0, "how `long` the load is measured before it (default: half of -for)")
	flags.StringVar(&servers, "server", "mariadb,mysql", "`kinds` of the private servers")
	flags.StringVar(&opts.dsn, "dsn", "", "`address` of a server that runs already, in place of private ones")
	flags.StringVar(&only, "only", "", "`names` of neighbours, separated by commas (default: all)")
	flags.StringVar(&opts.in, "in", "", "`folder` for the servers' data (default: a temporary one)")
	flags.BoolVar(&opts.json, "json", false, "print a JSON object for each neighbour, not a table")
	flags.BoolVar(&opts.list, "list", false, "print the names of the neighbours")
	flags.BoolVar(&verbose, "v", false, "show the log of the process under test")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.servers = strings.Split(servers, ",")
	if only != "" {
		opts.only = strings.Split(only, ",")
	}
	if opts.quiet == 0 {
		opts.quiet = opts.held / 2
	}
	opts.log = slog.New(slog.DiscardHandler)
	if verbose {
		opts.log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	err := opts.check(flags.Args())
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "neighbours:", err)
	}
	return opts, err
}

func (o *options) check(rest []string) error {
	for _, name := range o.only {
		if !slices.ContainsFunc(neighbours, func(n neighbour) bool { return n.name == name }) {
			return fmt.Errorf("there is no neighbour %q: -list has their names", name)
		}
	}
	for _, s := range o.servers {
		if s != string(dbtest.MariaDB) && s != string(dbtest.MySQL) {
			return fmt.Errorf("there is no server %q: want mariadb, mysql or both", s)
		}
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("want flags alone, got %q", rest)
	case o.held < 3*time.Second, o.quiet < time.Second:
		return errors.New("want -for of 3 s at least, and -quiet of a second")
	}
	return nil
}

func (o *options) wants(n neighbour) bool { return o.only == nil || slices.Contains(o.only, n.name) }

func measureAll(ctx context.Context, opts options, out io.Writer) (err error) {
	if opts.list {
		for _, n := range neighbours {
			_, _ = fmt.Fprintln(out, n.name)
		}
		return nil
	}
	root, err := record.Root(ctx)
	if err != nil {
		return err
	}
	pages, err := readPages(root)
	if err != nil {
		return err
	}
	if !opts.json {
		_, _ = fmt.Fprint(out, header)
	}
	if opts.dsn != "" {
		return measureOn(ctx, opts, pages, &site{kind: "named", dsn: opts.dsn}, out)
	}
	for _, kind := range opts.servers {
		s, end, startErr := start(ctx, opts, dbtest.Kind(kind))
		if startErr != nil {
			return errors.Join(err, startErr)
		}
		err = errors.Join(err, measureOn(ctx, opts, pages, s, out), end())
		if err != nil && !errors.Is(err, errBroken) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// site is a server to measure on.
type site struct {
	kind dbtest.Kind // or named
	dsn  string      // names no database that is used
	slow string      // the file that makes fsync slow while it exists; "": nothing does
}

// start starts a private server. Where a C compiler is, its fsync can be made slow.
func start(ctx context.Context, opts options, kind dbtest.Kind) (*site, func() error, error) {
	env, clean, err := slowFsync(ctx, kind)
	if err != nil {
		opts.log.Warn("fsync cannot be made slow", slog.Any("err", err))
	}
	server, err := dbtest.NewSupervised(ctx, kind, opts.in, env...)
	if err != nil {
		return nil, nil, errors.Join(err, clean())
	}
	end := func() error { return errors.Join(server.Close(), clean()) }
	db, err := server.Create(ctx)
	s := &site{kind: kind, dsn: db.DSN}
	if err == nil && env != nil {
		s.slow, err = slowFile(ctx, kind, db.DSN)
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return s, end, nil
}

func measureOn(ctx context.Context, opts options, pages []string, s *site, out io.Writer) (err error) {
	db, err := bench.Options{DSN: s.dsn}.Create(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Drop()) }()
	pool, err := sql.Open("mysql", db.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	t := &table{pool: pool, dsn: db.DSN, site: s, log: opts.log}
	if err := t.fill(ctx); err != nil {
		return err
	}
	var broken []string
	for _, n := range neighbours {
		if !opts.wants(n) {
			continue
		}
		if n.fsync && s.slow == "" {
			opts.log.Warn("left out, because fsync cannot be made slow", slog.String("neighbour", n.name))
			continue
		}
		if n.statements, err = t.statements(n, pages); err != nil {
			return err
		}
		r, err := t.measure(ctx, n, opts.quiet, opts.held)
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		r.Server = string(s.kind)
		if err := r.print(out, opts.json); err != nil {
			return err
		}
		if len(r.Broken) > 0 {
			broken = append(broken, n.name)
		}
	}
	if broken != nil {
		return fmt.Errorf("%w: on %s %s", errBroken, s.kind, strings.Join(broken, ", "))
	}
	return nil
}

// measure runs the load before and during a transaction of the neighbour, and until all its tasks are complete.
func (t *table) measure(ctx context.Context, n neighbour, quiet, held time.Duration) (r result, err error) {
	way, err := newForwarder(ctx, t.dsn)
	if err != nil {
		return r, err
	}
	defer way.close()
	l, err := beginLoad(ctx, way.dsn, t.pool, t.log)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.end(ctx)) }()
	if err := lateness.Pass(ctx, warmUp); err != nil {
		return r, err
	}
	before := span{from: time.Now()}
	if err := lateness.Pass(ctx, quiet); err != nil {
		return r, err
	}
	before.to = time.Now()
	if err := lateness.Pass(ctx, apart); err != nil {
		return r, err
	}
	during := span{from: time.Now()}
	during.to = during.from.Add(held)
	release, refused, err := t.hold(ctx, n, way, during.to)
	if err != nil {
		return r, errors.Join(err, release())
	}
	blocked, probeErr := t.probe(ctx) // the measured span is over, and the locks are still held
	if err := errors.Join(probeErr, release()); err != nil {
		return r, err
	}
	lost := l.drain(ctx)
	r = l.ledger.judge(n, before, during, blocked)
	r.Refused, r.Lost = refused, lost
	r.Broken = r.breaks(n)
	return r, ctx.Err()
}

const (
	// warmUp lasts until the longest tasks of the load end as often as they begin.
	warmUp = 5 * time.Second
	// apart lets what belongs to the quiet end before the neighbour comes.
	apart = time.Second
)

func (r *result) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	_, err := fmt.Fprintln(out, r.line())
	return err
}
