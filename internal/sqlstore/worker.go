package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const workerTable = "delay_task_worker"

// workerLinger is how long the row of an expired worker is kept: after an outage the heartbeats find their rows again.
const workerLinger = time.Hour

// purgedWorkers bounds a purge of workers.
const purgedWorkers = 500

var errWorkerGone = errors.New("the worker was deleted meanwhile: try again")

// SaveWorker stores a worker that lives for its TTL by the database's clock, and returns it with its id and times. A worker of
// the same application and address is replaced: it keeps its id, the time when it was created, and its secret where w has none.
func (s *Store) SaveWorker(ctx context.Context, w row.Worker) (row.Worker, error) {
	const op = "store a worker"
	tags, err := bindList(w.Tags)
	if err != nil {
		return row.Worker{}, &row.Error{Class: row.ClassCaller, Op: op, Err: err}
	}
	d := s.own
	insert, insertArgs := d.insertWorker(w, tags)
	var stored row.Worker
	err = repeat(ctx, func() error {
		return s.keep.do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
			there, err := d.readWorker(ctx, conn, w)
			if err != nil {
				return err
			}
			query, args := insert, insertArgs
			if there.ID != 0 {
				query, args = d.updateWorker(there.ID, w, tags)
			}
			if _, err = conn.ExecContext(ctx, query, args...); err != nil {
				return err
			}
			stored, err = d.readWorker(ctx, conn, w)
			if deleted := stored.ID == 0 || there.ID != 0 && stored.ID != there.ID; err == nil && deleted {
				return &row.Error{Class: row.ClassNotApplied, Op: op, Err: errWorkerGone}
			}
			return err
		})
	})
	if err != nil {
		return row.Worker{}, err
	}
	return stored, nil
}

func (d dialect) insertWorker(w row.Worker, tags string) (string, []any) {
	text := d.bindText
	return "INSERT INTO " + workerTable + " (app, address, address_hash, tags, secret, ttl," +
			" create_time, expire_time, update_time) VALUES (" + text + ", " + text + ", UNHEX(?), " + text + ", UNHEX(?), ?, " +
			d.now + ", " + d.inMillis("?") + ", " + d.now + ")",
		[]any{w.App, w.Address, addressHash(w), tags, sealedOrNull(w), w.TTL.Milliseconds(), w.TTL.Milliseconds()}
}

func (d dialect) updateWorker(id int64, w row.Worker, tags string) (string, []any) {
	return "UPDATE " + workerTable + " AS t" + d.byID + " SET tags = " + d.bindText + ", secret = COALESCE(UNHEX(?), t.secret)," +
			" ttl = ?, expire_time = " + d.inMillis("?") + ", update_time = " + d.now + " WHERE t.id = ?",
		[]any{tags, sealedOrNull(w), w.TTL.Milliseconds(), w.TTL.Milliseconds(), id}
}

// inMillis is a time so many milliseconds from now.
func (d dialect) inMillis(ms string) string { return fmt.Sprintf(d.add, d.now, ms) }

func addressHash(w row.Worker) string { return hexed(sha256.Sum256([]byte(w.Address))) }

func sealedOrNull(w row.Worker) any {
	if w.Secret == nil {
		return nil
	}
	return hex.EncodeToString(w.Secret)
}

// Heartbeat lets a worker live for its TTL from now by the database's clock. It reports whether the worker is there: one that
// is not has to be stored again.
func (s *Store) Heartbeat(ctx context.Context, id int64) (bool, error) {
	query, args := s.own.heartbeat(id)
	return s.changeWorker(ctx, "keep a worker alive", query, args)
}

// heartbeat writes a new update_time each time, so a row that is met is a row changed.
func (d dialect) heartbeat(id int64) (string, []any) {
	return "UPDATE " + workerTable + " AS t" + d.byID + " SET expire_time = " + d.inMillis("t.ttl") + ", update_time = " + d.now +
		" WHERE t.id = ?", []any{id}
}

// DeleteWorker deletes a worker and reports whether it was there.
func (s *Store) DeleteWorker(ctx context.Context, id int64) (bool, error) {
	query, args := s.own.deleteWorker(id)
	return s.changeWorker(ctx, "delete a worker", query, args)
}

func (d dialect) deleteWorker(id int64) (string, []any) {
	return fmt.Sprintf(d.deleteFrom, workerTable) + " WHERE t.id = ?", []any{id}
}

func (s *Store) changeWorker(ctx context.Context, op, query string, args []any) (bool, error) {
	var changed int
	err := s.keep.do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		changed, err = execute(ctx, conn, query, args)
		return err
	})
	return changed > 0, err
}

// Worker returns one worker, expired or not, and reports whether it is there.
func (s *Store) Worker(ctx context.Context, id int64) (found row.Worker, there bool, err error) {
	query, args := s.dialect.workerByID(id)
	err = scan(ctx, s.db, query, args, func(r *workerRecord) error {
		found, there = r.worker(), true
		return nil
	})
	return found, there, classify("read a worker", err)
}

// WorkerAt returns the worker of an application and address, expired or not, and reports whether it is there.
func (s *Store) WorkerAt(ctx context.Context, app, address string) (found row.Worker, there bool, err error) {
	err = s.keep.do(ctx, "find a worker", func(ctx context.Context, conn *sql.Conn) (err error) {
		found, err = s.own.readWorker(ctx, conn, row.Worker{App: app, Address: address})
		return err
	})
	return found, found.ID != 0, err
}

func (d dialect) workerByID(id int64) (string, []any) {
	return "SELECT " + d.workerList() + " FROM " + workerTable + " AS t WHERE t.id = ?", []any{id}
}

// Workers returns the workers that are alive, by id, and the time of the database at which they are.
func (s *Store) Workers(ctx context.Context) ([]row.Worker, row.Reading, error) {
	d := s.dialect
	query := "SELECT c.*, " + d.workerList() + " FROM (SELECT " + d.reading() + ") c" +
		" LEFT JOIN " + workerTable + " AS t ON t.expire_time > " + d.now + " ORDER BY t.id"
	var workers []row.Worker
	var reading row.Reading
	err := scan(ctx, s.db, query, nil, func(r *workerRecord) (err error) {
		if reading, err = (&record{DBTime: r.DBTime, DBServer: r.DBServer}).reading(); err != nil || r.ID == nil {
			return err
		}
		workers = append(workers, r.worker())
		return nil
	})
	return workers, reading, classify("read workers", err)
}

// CountWorkers returns how many workers are stored, those that have expired included.
func (s *Store) CountWorkers(ctx context.Context) (n int, err error) {
	err = scan(ctx, s.db, "SELECT COUNT(*) AS n FROM "+workerTable, nil, func(r *struct {
		N int `db:"n"`
	}) error {
		n = r.N
		return nil
	})
	return n, classify("count workers", err)
}

// workerRecord is a row of delay_task_worker, beside the clock; all but the clock is NULL when there is no worker.
type workerRecord struct {
	DBTime   sql.RawBytes `db:"db_time"`
	DBServer sql.RawBytes `db:"db_server"`

	ID      sql.RawBytes `db:"id"`
	App     sql.RawBytes `db:"app"`
	Address sql.RawBytes `db:"address"`
	Tags    sql.RawBytes `db:"tags"`
	Secret  sql.RawBytes `db:"secret"`
	TTL     sql.RawBytes `db:"ttl"`
	Created sql.RawBytes `db:"create_time"`
	Expires sql.RawBytes `db:"expire_time"`
}

// worker decodes what can be read: one spoiled row must not hide the other workers. One without tags is called with nothing.
func (r *workerRecord) worker() row.Worker {
	var d decoder
	return row.Worker{
		ID: d.int("id", r.ID, 1, math.MaxInt64), App: string(r.App), Address: string(r.Address), Tags: readList(r.Tags),
		Secret: unhexed(r.Secret), TTL: d.millis("ttl", r.TTL),
		Created: d.time("create_time", r.Created), Expires: d.time("expire_time", r.Expires),
	}
}

func (d dialect) workerList() string {
	return strings.Join([]string{"t.id", d.text("app"), d.text("address"), d.text("tags"), "HEX(t.secret) AS secret", "t.ttl",
		d.time("create_time"), d.time("expire_time")}, ", ")
}

// readWorker returns the worker of the same application and address; its id is 0 when there is none.
func (d dialect) readWorker(ctx context.Context, q queryer, w row.Worker) (found row.Worker, err error) {
	query, args := d.findWorker(w)
	err = scan(ctx, q, query, args, func(r *workerRecord) error {
		found = r.worker()
		return nil
	})
	return found, err
}

// findWorker is for connections of our own: elsewhere the application would be compared in their character set.
func (d dialect) findWorker(w row.Worker) (string, []any) {
	return "SELECT " + d.workerList() + " FROM " + workerTable + " AS t" +
			" WHERE t.app = " + d.bindText + " AND t.address_hash = UNHEX(?)",
		[]any{w.App, addressHash(w)}
}

// PurgeWorkers deletes workers that expired over an hour ago by the database's clock, at most 500, and returns how many.
func (s *Store) PurgeWorkers(ctx context.Context) (int, error) {
	const op = "purge workers"
	query, args := s.dialect.oldWorkers()
	ids, err := selectIDs(ctx, s.db, query, args...)
	if err != nil || len(ids) == 0 {
		return 0, classify(op, err)
	}
	query, args = s.own.purgeWorkers(ids)
	var deleted int
	err = s.keep.do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		deleted, err = execute(ctx, conn, query, args)
		return err
	})
	return deleted, err
}

func (d dialect) oldWorkers() (string, []any) {
	return "SELECT t.id FROM " + workerTable + " AS t WHERE " + d.isOld("t.expire_time") + " ORDER BY t.id LIMIT ?",
		[]any{-workerLinger.Milliseconds(), purgedWorkers}
}

func (d dialect) purgeWorkers(ids []int64) (string, []any) {
	return fmt.Sprintf(d.deleteFrom, workerTable) + " WHERE t.id IN (" + idList(ids) + ") AND " + d.isOld("t.expire_time"),
		[]any{-workerLinger.Milliseconds()}
}
