package sqlstore

import (
	"cmp"
	"context"
	"math"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// nodes has the columns in the order of their bound values. One broken row must not hide the other nodes: what cannot
// be read is zero. A node without tags serves none, and one without a heartbeat is not alive. The node's next heartbeat
// mends the row.
var nodes = newTable(nodeTable,
	integer("number", 0, math.MaxInt32, func(n *row.Node) *int { return &n.Number }),
	chars("token", func(n *row.Node) *string { return &n.Token }),
	chars("name", func(n *row.Node) *string { return &n.Name }),
	chars("host", func(n *row.Node) *string { return &n.Host }),
	integer("pid", 0, math.MaxInt32, func(n *row.Node) *int { return &n.PID }),
	integer("started_at", 0, math.MaxInt64, func(n *row.Node) *int64 { return &n.StartedAt }),
	chars("address", func(n *row.Node) *string { return &n.Address }),
	chars("version", func(n *row.Node) *string { return &n.Version }),
	list("tags", func(n *row.Node) *[]string { return &n.Tags }),
	flag("leaving", math.MaxUint8, func(n *row.Node) *bool { return &n.Leaving }),
	column[row.Node]{
		name: "wake", form: aText,
		decode: func(_ *decoder, n *row.Node, raw []byte) { n.Wake = row.ReadWake(raw, n.Token) },
	},
	column[row.Node]{
		name: "schedules", form: aText,
		decode: func(_ *decoder, n *row.Node, raw []byte) { n.Declares = row.ReadDeclares(raw, n.Token) },
	},
	moment("heartbeat", func(n *row.Node) *row.Time { return &n.Heartbeat }),
)

// Nodes implements [store.Nodes]. The clock is read in the same statement as the heartbeats that it judges.
func (s *Store) Nodes(ctx context.Context) (all []row.Node, reading row.Reading, err error) {
	d := s.dialect
	query := clause{sql: "SELECT c.*, " + nodes.list(d, "") +
		" FROM (SELECT " + d.reading() + ") c LEFT JOIN " + nodeTable + " ON 1 = 1 ORDER BY number"}
	all, reading, err = readAll(ctx, s.db, query, nodes)
	return all, reading, classify("read nodes", err)
}

// Cluster implements [store.Nodes]. Of the nodes it reads a sum of checksums, over every column and also over what was
// written by hand.
func (s *Store) Cluster(ctx context.Context, fresh time.Duration) (c store.Cluster, err error) {
	var tags tagReader
	var clock, server []byte
	var members, live *int64 // NULL in the row of a tag
	var broken error
	err = scan(ctx, s.db, s.dialect.cluster(fresh), func() {
		tags.add()
		if members != nil {
			c.Members = *members
			c.Reading, broken = readingOf(clock, server)
			s.shareConnections(int(*live))
		}
	}, append([]any{&clock, &server, &members, &live}, tags.fields()...)...)
	if err == nil {
		err = broken
	}
	c.Tags, c.Look = tags.sorted(), tags.look
	return c, classify("read the cluster", err)
}

func (d dialect) cluster(fresh time.Duration) clause {
	columns := []string{"number"}
	for _, name := range nodeNames {
		if name != "heartbeat" {
			columns = append(columns, "COALESCE("+name+", '')")
		}
	}
	lives := "heartbeat BETWEEN " + d.inMillis("?") + " AND " + d.inMillis("?")
	checksum := d.checksum + "(CONCAT_WS('|', " + strings.Join(append(columns, lives), ", ") + "))"
	bound := []any{-fresh.Milliseconds(), fresh.Milliseconds()}
	return clause{
		"SELECT " + d.reading() + ", COALESCE(SUM(" + checksum + "), 0) + COUNT(*) AS members," +
			" COUNT(CASE WHEN " + lives + " THEN 1 END) AS live, NULL AS tag, NULL AS paused, NULL AS reason, (" +
			firstLook + ") AS look_time FROM " + nodeTable +
			" UNION ALL SELECT NULL, NULL, NULL, NULL, " + d.tagStates() + ", NULL FROM " + tagTable,
		append(bound, bound...),
	}
}

// shareConnections bounds the connections of this process, so that the server has enough for all live nodes.
func (s *Store) shareConnections(live int) {
	if s.servers == nil {
		return
	}
	most, share := mostOf(s.db.Stats().MaxOpenConnections, s.concurrency), s.servers.share(live)
	if share > 0 {
		most = min(most, max(share-readers, crowded))
	}
	s.connections.bound(most)
	s.db.bound(share)
}

// nodeNames has all columns of a node but its number.
var nodeNames = namesOf(nodes.columns)[1:]

func (d dialect) nodeValues(n row.Node) (binds []string, args []any) {
	text := d.bindText
	return []string{text, text, text, "?", "?", text, text, text, "?", text, text, d.now}, []any{
		n.Token, n.Name, n.Host, n.PID, n.StartedAt, n.Address, n.Version, bindList(n.Tags), n.Leaving,
		textOrNull(n.Wake.Column()), textOrNull(n.Declares.Column()),
	}
}

// Join implements [store.Nodes]. Of two nodes that want a free number or a stale row, the second finds the first one's
// row.
func (s *Store) Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error) {
	d := s.dialect
	n.Wake.Server = s.servers.name()
	stale := "(token = ? OR heartbeat < " + d.inMillis("?") + ")"
	joined, err := s.writeNode(ctx, "join as a node", n, stale, n.Token, -staleAfter.Milliseconds())
	if joined || err != nil {
		return joined, err
	}
	binds, args := d.nodeValues(n)
	insert := "INSERT INTO " + nodeTable + " (number, " + strings.Join(nodeNames, ", ") + ")" +
		" VALUES (?, " + strings.Join(binds, ", ") + ")"
	err = s.lanes[beats].write(ctx, "join as a node", clause{insert, append([]any{n.Number}, args...)})
	if isDuplicate(err) {
		return false, nil
	}
	return err == nil, err
}

// Beat implements [store.Nodes].
func (s *Store) Beat(ctx context.Context, n row.Node) (bool, error) {
	n.Wake.Server = s.servers.name()
	return s.writeNode(ctx, "keep the node alive", n, "token = ?", n.Token)
}

// writeNode writes the row of n.Number if the guard holds, and reports whether it does. Every heartbeat differs, so a
// row that matches always counts as changed.
func (s *Store) writeNode(ctx context.Context, op string, n row.Node, guard string, guardArgs ...any) (bool, error) {
	binds, args := s.dialect.nodeValues(n)
	sets := make([]string, len(nodeNames))
	for i, name := range nodeNames {
		sets[i] = name + " = " + binds[i]
	}
	query := "UPDATE " + nodeTable + s.dialect.byID + " SET " + strings.Join(sets, ", ") +
		" WHERE number = ? AND " + guard
	written, err := s.lanes[beats].execute(ctx, op, clause{query, append(append(args, n.Number), guardArgs...)})
	return written > 0, err
}

// Leave implements [store.Nodes].
func (s *Store) Leave(ctx context.Context, tokens []string) error {
	const op = "leave as a node"
	if len(tokens) == 0 {
		return nil
	}
	where := "token IN (" + marks(len(tokens), "?") + ")"
	of := clause{"SELECT number AS id FROM " + nodeTable + " WHERE " + where, anys(tokens)}
	remove := func(numbers []int64) clause {
		return s.dialect.deleteRows(nodeTable, where+" AND number IN ("+idList(numbers)+")", anys(tokens)...)
	}
	numbers, err := firsts[int64](ctx, s.db, of)
	if err != nil || len(numbers) == 0 {
		return classify(op, err)
	}
	err = s.lanes[beats].write(ctx, op, remove(numbers))
	if isLocked(err) { // the others leave, and the caller is told
		_, around := purgeAround(ctx, s, purging[int64]{
			op: op, lane: beats,
			old: oldOf(s, place{table: nodeTable}, func(held []int64) clause {
				return clause{of.sql + without("number", idList(held)), of.args}
			}),
			names: func(numbers []int64, lock string) clause {
				return s.own.namesIn(nodeTable, "t.number", "t.number IN ("+idList(numbers)+")", lock)
			},
			delete: remove,
		})
		return cmp.Or(around, err)
	}
	return err
}

// SetTag implements [store.Nodes].
func (s *Store) SetTag(ctx context.Context, t row.TagState) error {
	d := s.dialect
	query := "INSERT INTO " + tagTable + " (tag, paused, reason, update_time) VALUES (" + d.bindText + ", ?, " +
		d.bindText + ", " + d.now + ")" + d.upsert + "paused = ?, reason = " + d.bindText + ", update_time = " + d.now
	args := []any{t.Tag, t.Paused, t.Reason, t.Paused, t.Reason}
	return s.lanes[chores].write(ctx, "store a tag", clause{query, args})
}
