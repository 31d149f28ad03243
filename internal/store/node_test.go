package store_test

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
)

// Somebody writes by hand what the columns' types let pass. The other nodes are seen as before, and this one serves nothing that
// was never said.
func TestGarbageInANodeIsThatNodesAlone(t *testing.T) {
	type garbage struct{ column, value string }
	anywhere := []garbage{
		{"tags", "''"}, {"tags", "'{'"}, {"tags", `'{"a": true}'`}, {"tags", `'["a", 1]'`}, {"tags", "'7'"}, {"tags", "'null'"},
		{"leaving", "2"},
	}
	onSQLite := []garbage{
		{"tags", "x'ff'"}, {"name", "x'ff'"}, {"pid", "'many'"}, {"pid", "1.5"}, {"started_at", "''"}, {"leaving", "'soon'"},
		{"heartbeat", "'now'"}, {"heartbeat", "1"},
	}
	onServers := []garbage{{"heartbeat", "'0000-00-00'"}, {"pid", "9223372036854775807"}}
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		list := append(anywhere, onServers...)
		if d.Kind == dbtest.SQLite {
			list = append(anywhere, onSQLite...)
		} else {
			pool = callersPool(t, d, "sql_mode", "''") // strict servers refuse the zero date
		}
		for _, g := range list {
			t.Run(g.column+"="+g.value, func(t *testing.T) {
				for number, token := range []string{"whole", "spoiled"} {
					n := row.Node{Number: number, Token: token, PID: 7, StartedAt: 8, Tags: []string{"a"}}
					if joined, err := s.Join(t.Context(), n, time.Hour); err != nil || !joined {
						t.Fatal(joined, err)
					}
				}
				exec(t, pool.DB, "UPDATE delay_task_node SET "+g.column+" = "+g.value+" WHERE number = 1")
				nodes, reading, err := s.Nodes(t.Context())
				if err != nil || len(nodes) != 2 || len(nodes[0].Tags) != 1 || reading.Time.IsZero() {
					t.Fatalf("nodes %+v, %v", nodes, err)
				}
				spoiled := nodes[1]
				if spoiled.Number != 1 || spoiled.Token != "spoiled" {
					t.Errorf("the spoiled node is %+v", spoiled)
				}
				switch {
				case g.column == "tags" && spoiled.Tags != nil:
					t.Errorf("it serves %q", spoiled.Tags)
				case g.column == "leaving" && g.value == "2" && !spoiled.Leaving:
					t.Error("it is not leaving")
				case g.column == "heartbeat" && !spoiled.Heartbeat.IsZero():
					t.Errorf("it was alive at %v", spoiled.Heartbeat)
				}
			})
		}
	})
}
