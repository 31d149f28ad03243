package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const nodeTable = "delay_task_node"

// nodeRecord is a row of delay_task_node and a reading of the clock. All but the clock is NULL when there is no node.
type nodeRecord struct {
	DBTime   sql.RawBytes `db:"db_time"`
	DBServer sql.RawBytes `db:"db_server"`

	Number    sql.RawBytes `db:"number"`
	Token     sql.RawBytes `db:"token"`
	Name      sql.RawBytes `db:"name"`
	Host      sql.RawBytes `db:"host"`
	PID       sql.RawBytes `db:"pid"`
	StartedAt sql.RawBytes `db:"started_at"`
	Address   sql.RawBytes `db:"address"`
	Version   sql.RawBytes `db:"version"`
	Tags      sql.RawBytes `db:"tags"`
	Leaving   sql.RawBytes `db:"leaving"`
	Wake      sql.RawBytes `db:"wake"`
	Schedules sql.RawBytes `db:"schedules"`
	Heartbeat sql.RawBytes `db:"heartbeat"`
}

// node decodes what can be read and leaves the rest zero: one broken row must not hide the other nodes. A node without
// tags serves none, and one without a heartbeat is not alive. The node's next heartbeat mends the row.
func (r *nodeRecord) node() row.Node {
	var d decoder
	return row.Node{
		Number:    int(d.int("number", r.Number, 0, math.MaxInt32)),
		Token:     string(r.Token),
		Name:      string(r.Name),
		Host:      string(r.Host),
		PID:       int(d.int("pid", r.PID, 0, math.MaxInt32)),
		StartedAt: d.int("started_at", r.StartedAt, 0, math.MaxInt64),
		Address:   string(r.Address),
		Version:   string(r.Version),
		Tags:      readList(r.Tags),
		Leaving:   d.int("leaving", r.Leaving, 0, math.MaxUint8) != 0,
		Wake:      row.ReadWake(r.Wake, string(r.Token)),
		Declares:  row.ReadDeclares(r.Schedules, string(r.Token)),
		Heartbeat: d.time("heartbeat", r.Heartbeat),
	}
}

// readList reads a JSON array of strings. It returns nil for anything else.
func readList(text []byte) []string {
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return nil // list may hold the strings before an element that is none
	}
	return list
}

// bindList writes a JSON array of strings. A nil list is an empty array.
func bindList(list []string) (string, error) {
	if list == nil {
		list = []string{}
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// Nodes implements [store.Nodes]. The clock is read in the same statement as the heartbeats that it judges.
func (s *Store) Nodes(ctx context.Context) ([]row.Node, row.Reading, error) {
	d := s.dialect
	columns := []string{
		"c.*", "number", d.text("token"), d.text("name"), d.text("host"), "pid", "started_at", d.text("address"),
		d.text("version"), d.text("tags"), "leaving", d.text("wake"),
		d.text("schedules"), d.time("heartbeat"),
	}
	query := "SELECT " + strings.Join(columns, ", ") +
		" FROM (SELECT " + d.reading() + ") c LEFT JOIN " + nodeTable + " ON 1 = 1 ORDER BY number"
	var nodes []row.Node
	var reading row.Reading
	err := scan(ctx, s.db, query, nil, func(r *nodeRecord) (err error) {
		if reading, err = (&record{DBTime: r.DBTime, DBServer: r.DBServer}).reading(); err != nil || r.Number == nil {
			return err
		}
		nodes = append(nodes, r.node())
		return nil
	})
	return nodes, reading, classify("read nodes", err)
}

// nodeColumns lists all columns of a node but its number, in the order in which their values are bound.
var nodeColumns = []string{
	"token", "name", "host", "pid", "started_at", "address", "version", "tags", "leaving", "wake",
	"schedules", "heartbeat",
}

func (d dialect) nodeValues(n row.Node) (binds []string, args []any, err error) {
	tags, err := bindList(n.Tags)
	if err != nil {
		return nil, nil, fmt.Errorf("tags of node %d: %w", n.Number, err)
	}
	wake, err := n.Wake.Column()
	if err != nil {
		return nil, nil, fmt.Errorf("address for wake-ups of node %d: %w", n.Number, err)
	}
	declares, err := n.Declares.Column()
	if err != nil {
		return nil, nil, fmt.Errorf("schedules of node %d: %w", n.Number, err)
	}
	text := d.bindText
	return []string{text, text, text, "?", "?", text, text, text, "?", text, text, d.now}, []any{
		n.Token, n.Name, n.Host, n.PID, n.StartedAt, n.Address, n.Version, tags, n.Leaving, textOrNull(wake),
		textOrNull(declares),
	}, nil
}

// Join implements [store.Nodes]. Of two nodes that want a free number or a stale row, the second finds the first one's
// row.
func (s *Store) Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error) {
	d := s.dialect
	stale := "(token = ? OR heartbeat < " + d.inMillis("?") + ")"
	joined, err := s.writeNode(ctx, "join as a node", n, stale, n.Token, -staleAfter.Milliseconds())
	if joined || err != nil {
		return joined, err
	}
	binds, args, err := d.nodeValues(n)
	if err != nil {
		return false, err
	}
	insert := "INSERT INTO " + nodeTable + " (number, " + strings.Join(nodeColumns, ", ") + ")" +
		" VALUES (?, " + strings.Join(binds, ", ") + ")"
	_, err = s.beat.execute(ctx, "join as a node", insert, append([]any{n.Number}, args...))
	if isDuplicate(err) {
		return false, nil
	}
	return err == nil, err
}

// Beat implements [store.Nodes].
func (s *Store) Beat(ctx context.Context, n row.Node) (bool, error) {
	return s.writeNode(ctx, "keep the node alive", n, "token = ?", n.Token)
}

// writeNode writes the row of n.Number if the guard holds, and reports whether it does. Every heartbeat differs, so a
// row that matches always counts as changed.
func (s *Store) writeNode(ctx context.Context, op string, n row.Node, guard string, guardArgs ...any) (bool, error) {
	binds, args, err := s.dialect.nodeValues(n)
	if err != nil {
		return false, err
	}
	sets := make([]string, len(nodeColumns))
	for i, name := range nodeColumns {
		sets[i] = name + " = " + binds[i]
	}
	query := "UPDATE " + nodeTable + s.dialect.byID + " SET " + strings.Join(sets, ", ") +
		" WHERE number = ? AND " + guard
	written, err := s.beat.execute(ctx, op, query, append(append(args, n.Number), guardArgs...))
	return written > 0, err
}

// Leave implements [store.Nodes].
func (s *Store) Leave(ctx context.Context, tokens []string) error {
	const op = "leave as a node"
	if len(tokens) == 0 {
		return nil
	}
	where := " WHERE token IN (" + marks(len(tokens), "?") + ")"
	numbers, err := selectIDs(ctx, s.db, "SELECT number AS id FROM "+nodeTable+where, anys(tokens)...)
	if err != nil || len(numbers) == 0 {
		return classify(op, err)
	}
	query := fmt.Sprintf(s.dialect.deleteFrom, nodeTable) + where + " AND number IN (" + idList(numbers) + ")"
	_, err = s.beat.execute(ctx, op, query, anys(tokens))
	return err
}

const tagTable = "delay_task_tag"

// SetTag implements [store.Nodes].
func (s *Store) SetTag(ctx context.Context, t row.TagState) error {
	d := s.dialect
	query := "INSERT INTO " + tagTable + " (tag, paused, update_time) VALUES (" + d.bindText + ", ?, " + d.now + ")" +
		d.upsert + "paused = ?, update_time = " + d.now
	_, err := s.keep.execute(ctx, "store a tag", query, []any{t.Tag, t.Paused, t.Paused})
	return err
}
