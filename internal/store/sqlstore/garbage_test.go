package sqlstore_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// garbage lists assignments like "column = value" that may be written by hand, because the column's type allows them.
type garbage struct{ anywhere, onSQLite, onServers []string }

// each calls f for each assignment.
func (g garbage) each(t *testing.T, f func(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, set string)) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		sets := slices.Concat(g.anywhere, g.onSQLite)
		if d.Kind != dbtest.SQLite {
			pool = callersPool(t, d, "sql_mode", "''") // strict servers refuse the zero date
			sets = slices.Concat(g.anywhere, g.onServers)
		}
		for _, set := range sets {
			t.Run(set, func(t *testing.T) { f(t, s, pool, set) })
		}
	})
}

// Each such row is reported alone, is claimed like any other (which may mend it), and can be set to failed. Other rows
// are read as before.
func TestGarbageInAnyColumnIsThatRowsAlone(t *testing.T) {
	garbage{
		anywhere: []string{"late_policy = 9", "errors = 'oops'", "delay_time = 9223372036854775807", "status = 9"},
		onSQLite: []string{
			"version = 9223372036854775807", "attempt = 'many'", "attempt = -1", "max_attempts = 'none'",
			"crash_count = x'ff'", "ttr = 1.5", "priority = 'high'", "headers = '{'", "headers = '[]'",
			"max_late_ms = -5", "ip_address = '::1'", "delay_time = 'soon'", "expected_time = 'tomorrow'",
			"start_time = '2026'", "process = 'web'", "claim = 1.5", "create_time = ''", "update_time = '-'",
			"attempt = 9223372036854775807", "crash_count = 'often'", "ttr = 'long'", "due_time = '0'",
		},
		onServers: []string{
			"version = 18446744073709551615", "attempt = 4294967295", "headers = '[1]'",
			"ip_address = 18446744073709551615", "delay_time = -1", "expected_time = '0000-00-00'",
			"start_time = '0000-00-00'", "create_time = '0000-00-00'",
			"update_time = '0000-00-00'", "due_time = '0000-00-00'", "version = 9223372036854775807",
			"max_late_ms = 18446744073709551615",
		},
	}.each(t, func(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, set string) {
		exec(t, pool.DB, "DELETE FROM delay_task_message")
		insert(t, s, task(1, ""), task(2, ""))
		exec(t, pool.DB, "UPDATE delay_task_message SET "+set+" WHERE id = 2")
		column, _, _ := strings.Cut(set, " ")
		rows, broken, err := s.Get(t.Context(), nil, []int64{1, 2})
		if err != nil || len(rows) != 1 || rows[0].ID != 1 || len(broken) != 1 || broken[0].ID != 2 ||
			!strings.Contains(broken[0].Reason, column) {
			t.Fatalf("read %v, broken %+v, %v", rows, broken, err)
		}
		if _, err := s.Due(t.Context(), row.Window{Tags: []string{"a"}, To: row.MaxTime, Limit: 10}); err != nil {
			t.Errorf("due: %v", err)
		}
		if column != "status" {
			refs := []row.Ref{{ID: 1}, broken[0].Ref}
			if column == "version" { // which may be all that a claim asks for
				refs = refs[1:]
			}
			claimed, err := s.Claim(t.Context(), row.Claim{Rows: refs, Executor: row.Executor{Process: 9, Claim: 1}})
			if err != nil || len(claimed.Rows)+len(claimed.Broken) != len(refs) {
				t.Fatalf("claimed %+v, %v", claimed, err)
			}
			if len(claimed.Broken) == 0 { // a claim mends what it writes
				return
			}
			broken = claimed.Broken
		}
		n, err := s.Discard(t.Context(), broken)
		states, statesErr := s.States(t.Context(), []int64{2})
		if errors.Join(err, statesErr) != nil || n != 1 || len(states) != 1 || states[0].Status != row.Failed {
			t.Errorf("%d discarded, and the broken row is %+v (%v, %v), want it failed", n, states, err, statesErr)
		}
	})
}

// The other nodes are read as before, and this one serves no tags that it never named.
func TestGarbageInANodeIsThatNodesAlone(t *testing.T) {
	garbage{
		anywhere: []string{
			"tags = ''", "tags = '{'", `tags = '{"a": true}'`, `tags = '["a", 1]'`, "tags = '7'", "tags = 'null'",
			"leaving = 2",
		},
		onSQLite: []string{
			"tags = x'ff'", "name = x'ff'", "pid = 'many'", "pid = 1.5", "started_at = ''", "leaving = 'soon'",
			"heartbeat = 'now'", "heartbeat = 1",
		},
		onServers: []string{"heartbeat = '0000-00-00'", "pid = 9223372036854775807"},
	}.each(t, func(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, set string) {
		for number, token := range []string{"whole", "broken"} {
			n := row.Node{Number: number, Token: token, PID: 7, StartedAt: 8, Tags: []string{"a"}}
			if joined, err := s.Join(t.Context(), n, time.Hour); err != nil || !joined {
				t.Fatal(joined, err)
			}
		}
		exec(t, pool.DB, "UPDATE delay_task_node SET "+set+" WHERE number = 1")
		nodes, reading, err := s.Nodes(t.Context())
		if err != nil || len(nodes) != 2 || len(nodes[0].Tags) != 1 || reading.Time.IsZero() {
			t.Fatalf("nodes %+v, %v", nodes, err)
		}
		broken := nodes[1]
		if broken.Number != 1 || broken.Token != "broken" {
			t.Errorf("the broken node is %+v", broken)
		}
		switch column, value, _ := strings.Cut(set, " = "); {
		case column == "tags" && broken.Tags != nil:
			t.Errorf("it serves %q", broken.Tags)
		case column == "leaving" && value == "2" && !broken.Leaving:
			t.Error("it is not leaving")
		case column == "heartbeat" && !broken.Heartbeat.IsZero():
			t.Errorf("it was alive at %v", broken.Heartbeat)
		}
	})
}

// The other tokens are read as before.
func TestABrokenTokenAllowsNothing(t *testing.T) {
	garbage{
		anywhere:  []string{"tags = ''", `tags = '["a", 1]'`, "tags = '7'", "verbs = '{'", "hash = x'00'"},
		onSQLite:  []string{"expire_time = 'soon'", "expire_time = 1", "expire_time = ''", "tags = x'ff'"},
		onServers: []string{"expire_time = '0000-00-00'"},
	}.each(t, func(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, set string) {
		exec(t, pool.DB, "DELETE FROM delay_task_token")
		for n, name := range []string{"broken", "whole"} {
			_, err := s.CreateToken(t.Context(), accessToken(name, byte(n)))
			must(t, err)
		}
		exec(t, pool.DB, "UPDATE delay_task_token SET "+set+" WHERE name = 'broken'")
		tokens, reading, err := s.AccessTokens(t.Context())
		if err != nil || len(tokens) != 2 || len(tokens[1].Tags) != 2 || !tokens[1].Expires.IsZero() {
			t.Fatalf("%+v, %v", tokens, err)
		}
		token := tokens[0]
		expired := !token.Expires.IsZero() && token.Expires < reading.Time
		unknown := token.Hash != accessToken("", 0).Hash
		if len(token.Tags) > 0 && len(token.Verbs) > 0 && !expired && !unknown {
			t.Errorf("it is read as %+v", token)
		}
	})
}

func TestAnUnreadableSessionIsNone(t *testing.T) {
	garbage{
		onSQLite: []string{"token_hash = x'01'", "token_hash = 'text'", "expire_time = 'soon'", "expire_time = ''"},
	}.each(t, func(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, set string) {
		exec(t, pool.DB, "DELETE FROM delay_task_session")
		must(t, s.CreateSession(t.Context(), session(1, "a"), time.Hour))
		exec(t, pool.DB, "UPDATE delay_task_session SET "+set)
		must(t, s.CreateSession(t.Context(), session(2, "a"), time.Hour))
		found, _, err := s.Sessions(t.Context(), [][32]byte{session(1, "a").Hash, session(2, "a").Hash})
		if len(found) != 1 || found[0].Hash != session(2, "a").Hash || err != nil {
			t.Errorf("read as %+v, %v", found, err)
		}
	})
}

func TestGarbageInAReceiverIsThatReceiversAlone(t *testing.T) {
	garbage{
		anywhere: []string{"tags = ''", "tags = '{'", `tags = '["a", 1]'`, "tags = 'null'", "tags = '', secret = ''"},
	}.each(t, func(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, set string) {
		broken := saveReceiver(t, s, receiver("broken", "x"), time.Minute)
		whole := saveReceiver(t, s, receiver("whole", "x"), time.Minute)
		exec(t, pool.DB, "UPDATE delay_task_worker SET "+set+" WHERE app = 'broken'")
		got, _ := readReceivers(t, s)
		if len(got) != 2 || got[0].ID != broken.ID || got[0].Tags != nil || !reflect.DeepEqual(got[1], whole) {
			t.Errorf("read %+v", got)
		}
	})
}

func TestAnUnreadableRequestIsRefused(t *testing.T) {
	garbage{
		onSQLite: []string{"content = x'01'", "content = 'text'", "task_id = 0", "task_id = 'many'", "saved = 'no'"},
	}.each(t, func(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, set string) {
		exec(t, pool.DB, "DELETE FROM delay_task_request")
		r := request(1, 7)
		must(t, two(s.ReserveRequest(t.Context(), r)))
		exec(t, pool.DB, "UPDATE delay_task_request SET "+set)
		if got, mine, err := s.ReserveRequest(t.Context(), r); err == nil || mine {
			t.Errorf("reserved as %+v, %t", got, mine)
		}
	})
}

// A tag that is paused by hand with another number than 1 is paused, and the others are read as before.
func TestAnyNumberPausesATag(t *testing.T) {
	t.Parallel()
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		exec(t, pool.DB, "INSERT INTO delay_task_tag (tag, paused) VALUES ('a', 0), ('b', 1), ('c', 9)")
		tags, _, err := s.Tags(t.Context())
		want := []row.TagState{{Tag: "a"}, {Tag: "b", Paused: true}, {Tag: "c", Paused: true}}
		slices.SortFunc(tags, func(a, b row.TagState) int { return strings.Compare(a.Tag, b.Tag) })
		if err != nil || !reflect.DeepEqual(tags, want) {
			t.Errorf("got %+v, %v", tags, err)
		}
	})
}
