package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// receiverLinger is how long the row of an expired receiver is kept, so that heartbeats after an outage find their
// rows.
const receiverLinger = time.Hour

// purgedReceivers bounds a purge of receivers.
const purgedReceivers = 500

var errReceiverGone = errors.New("the receiver was deleted meanwhile: try again")

// SaveReceiver stores a receiver that lives for its TTL by the database's clock, and returns it with its id and times.
// It replaces a receiver of the same application and address, which keeps its id, its time of creation, and its secret
// where w has none.
func (s *Store) SaveReceiver(ctx context.Context, w row.Receiver) (row.Receiver, error) {
	const op = "store a receiver"
	tags, d := bindList(w.Tags), s.own
	insert := d.insertReceiver(w, tags)
	var stored row.Receiver
	err := repeat(ctx, func() error {
		return s.lanes[chores].do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
			there, err := d.readReceiver(ctx, conn, w)
			if err != nil {
				return err
			}
			write := insert
			if there.ID != 0 {
				write = d.updateReceiver(there.ID, w, tags)
			}
			if _, err = execute(ctx, conn, write); err != nil {
				return err
			}
			stored, err = d.readReceiver(ctx, conn, w)
			if deleted := stored.ID == 0 || there.ID != 0 && stored.ID != there.ID; err == nil && deleted {
				return notApplied(op, errReceiverGone)
			}
			return err
		})
	})
	if err != nil {
		return row.Receiver{}, err
	}
	return stored, nil
}

func (d dialect) insertReceiver(w row.Receiver, tags string) clause {
	text, ttl := d.bindText, w.TTL.Milliseconds()
	return clause{"INSERT INTO " + workerTable + " (app, address, address_hash, tags, secret, ttl," +
		" create_time, expire_time, update_time) VALUES (" + text + ", " + text + ", UNHEX(?), " + text +
		", UNHEX(?), ?, " + d.now + ", " + d.inMillis("?") + ", " + d.now + ")",
		[]any{w.App, w.Address, addressHash(w), tags, secretOrNull(w), ttl, ttl}}
}

func (d dialect) updateReceiver(id int64, w row.Receiver, tags string) clause {
	ttl := w.TTL.Milliseconds()
	return clause{"UPDATE " + workerTable + " AS t" + d.byID + " SET tags = " + d.bindText +
		", secret = COALESCE(UNHEX(?), t.secret), ttl = ?, expire_time = " + d.inMillis("?") +
		", update_time = " + d.now + " WHERE t.id = ?",
		[]any{tags, secretOrNull(w), ttl, ttl, id}}
}

func addressHash(w row.Receiver) string { return hexed(sha256.Sum256([]byte(w.Address))) }

func secretOrNull(w row.Receiver) any {
	if w.Secret == nil {
		return nil
	}
	return hex.EncodeToString(w.Secret)
}

// Heartbeat lets a receiver live for its TTL from now by the database's clock. It reports whether the receiver is
// there. One that is not has to be stored again.
func (s *Store) Heartbeat(ctx context.Context, id int64) (bool, error) {
	changed, err := s.lanes[chores].execute(ctx, "keep a receiver alive", s.own.heartbeat(id))
	return changed > 0, err
}

// heartbeat writes a new update_time each time, so a row that matches always counts as changed.
func (d dialect) heartbeat(id int64) clause {
	return clause{"UPDATE " + workerTable + " AS t" + d.byID + " SET expire_time = " + d.inMillis("t.ttl") +
		", update_time = " + d.now + " WHERE t.id = ?", []any{id}}
}

// DeleteReceiver deletes a receiver and reports whether it was there.
func (s *Store) DeleteReceiver(ctx context.Context, id int64) (bool, error) {
	deleted, err := s.lanes[chores].execute(ctx, "delete a receiver", s.own.deleteReceiver(id))
	return deleted > 0, err
}

func (d dialect) deleteReceiver(id int64) clause {
	return d.deleteRows(workerTable, "t.id = ?", id)
}

// Receiver returns one receiver, expired or not, and reports whether it is there.
func (s *Store) Receiver(ctx context.Context, id int64) (w row.Receiver, there bool, err error) {
	query := s.dialect.receiverByID(id)
	err = read(ctx, s.db, query, receivers, func(f *found[row.Receiver]) { w, there = f.row, true })
	return w, there, classify("read a receiver", err)
}

// ReceiverAt returns the receiver of an application and address, expired or not, and reports whether it is there.
func (s *Store) ReceiverAt(ctx context.Context, app, address string) (found row.Receiver, there bool, err error) {
	err = s.lanes[chores].do(ctx, "find a receiver", func(ctx context.Context, conn *sql.Conn) (err error) {
		found, err = s.own.readReceiver(ctx, conn, row.Receiver{App: app, Address: address})
		return err
	})
	return found, found.ID != 0, err
}

func (d dialect) receiverByID(id int64) clause {
	return clause{"SELECT " + receivers.list(d, "t.") + " FROM " + workerTable + " AS t WHERE t.id = ?", []any{id}}
}

// Receivers returns the receivers that are alive, by id, and the database's time of the reading.
func (s *Store) Receivers(ctx context.Context) ([]row.Receiver, row.Reading, error) {
	d := s.dialect
	query := clause{sql: "SELECT c.*, " + receivers.list(d, "t.") + " FROM (SELECT " + d.reading() + ") c" +
		" LEFT JOIN " + workerTable + " AS t ON t.expire_time > " + d.now + " ORDER BY t.id"}
	all, reading, err := readAll(ctx, s.db, query, receivers)
	return all, reading, classify("read receivers", err)
}

// CountReceivers returns how many receivers are stored, those that have expired included.
func (s *Store) CountReceivers(ctx context.Context) (n int, err error) {
	err = scan(ctx, s.db, clause{sql: "SELECT COUNT(*) AS n FROM " + workerTable}, func() {}, &n)
	return n, classify("count receivers", err)
}

// One broken row must not hide the other receivers: what cannot be read is zero. A receiver without tags is not called.
var receivers = newTable(workerTable,
	integer("id", 1, math.MaxInt64, func(w *row.Receiver) *int64 { return &w.ID }),
	chars("app", func(w *row.Receiver) *string { return &w.App }),
	chars("address", func(w *row.Receiver) *string { return &w.Address }),
	column[row.Receiver]{name: "address_hash"},
	list("tags", func(w *row.Receiver) *[]string { return &w.Tags }),
	column[row.Receiver]{
		name: "secret", form: aHash,
		decode: func(_ *decoder, w *row.Receiver, raw []byte) { w.Secret = unhexed(raw) },
	},
	millis("ttl", func(w *row.Receiver) *time.Duration { return &w.TTL }),
	moment("create_time", func(w *row.Receiver) *row.Time { return &w.Created }),
	moment("expire_time", func(w *row.Receiver) *row.Time { return &w.Expires }),
	column[row.Receiver]{name: "update_time"},
)

// readReceiver returns the receiver of the same application and address; without one the id is 0.
func (d dialect) readReceiver(ctx context.Context, q queryer, w row.Receiver) (stored row.Receiver, err error) {
	err = read(ctx, q, d.findReceiver(w), receivers, func(f *found[row.Receiver]) { stored = f.row })
	return stored, err
}

// findReceiver is for connections of a lane. On others the application would be compared in their character set.
func (d dialect) findReceiver(w row.Receiver) clause {
	return clause{"SELECT " + receivers.list(d, "t.") + " FROM " + workerTable + " AS t" +
		" WHERE t.app = " + d.bindText + " AND t.address_hash = UNHEX(?)",
		[]any{w.App, addressHash(w)}}
}

// PurgeReceivers deletes receivers that expired over an hour ago by the database's clock, at most 500, and returns how
// many.
func (s *Store) PurgeReceivers(ctx context.Context) (int, error) {
	return purge(ctx, s, purging[int64]{
		op: "purge receivers", lane: chores,
		old:    oldOf(s, place{table: workerTable}, s.dialect.oldReceivers),
		names:  s.own.ids(workerTable),
		delete: s.own.purgeReceivers,
	})
}

func (d dialect) oldReceivers(held []int64) clause {
	return clause{"SELECT t.id FROM " + workerTable + " AS t WHERE " + d.isOld("t.expire_time") +
		without("t.id", idList(held)) + " ORDER BY t.id LIMIT ?",
		[]any{-receiverLinger.Milliseconds(), purgedReceivers}}
}

// ids selects the ids of rows of a table whose key they are.
func (d dialect) ids(from string) func(ids []int64, lock string) clause {
	return func(ids []int64, lock string) clause {
		return d.namesIn(from, "t.id", "t.id IN ("+idList(ids)+")", lock)
	}
}

func (d dialect) purgeReceivers(ids []int64) clause {
	return d.deleteRows(workerTable, "t.id IN ("+idList(ids)+") AND "+d.isOld("t.expire_time"),
		-receiverLinger.Milliseconds())
}
