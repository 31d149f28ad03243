package integration

import (
	"sync"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestTenSchedulersMigrateAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		opened := make([]*delaytask.Scheduler, 10)
		var wg sync.WaitGroup
		for i := range opened {
			wg.Go(func() {
				s, err := delaytask.Open(t.Context(), d.DSN, config(t))
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				opened[i] = s
			})
		}
		wg.Wait()
		for _, s := range opened {
			if s != nil {
				t.Cleanup(func() { stop(t, s) })
			}
		}
		if t.Failed() {
			return
		}
		nodes, err := opened[0].Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		numbers := map[int]bool{}
		for _, n := range nodes {
			numbers[n.Number] = n.Alive
		}
		if len(nodes) != 10 || len(numbers) != 10 {
			t.Errorf("%d nodes with %d numbers, want 10 of each", len(nodes), len(numbers))
		}
		reachedBy := save(t, opened[3], "t", 0)
		serve(t, opened[7], "t", nothing)
		reaches(t, opened[5], reachedBy, delaytask.Completed)
	})
}

func TestOpenSaysInOneSentenceWhatIsWrongWithTheTables(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		open(t, d)
		db := pool(t, d)
		execute(t, db, "ALTER TABLE delay_task_message ADD COLUMN customer VARCHAR(20) NULL")
		if err := refusal(t, db); err != nil {
			t.Errorf("with an extra column that may be NULL: %v", err)
		}
		if d.Kind != dbtest.SQLite {
			execute(t, db, "ALTER TABLE delay_task_tag ENGINE = MyISAM")
			wantSentence(t, refusal(t, db), "delay_task_tag", "MyISAM", "ENGINE=InnoDB")
			execute(t, db, "ALTER TABLE delay_task_message ADD COLUMN must INT NOT NULL")
			wantSentence(t, refusal(t, db), "delay_task_message.must", "default")
			execute(t, db, "ALTER TABLE delay_task_message DROP COLUMN must")
		}
		execute(t, db, "ALTER TABLE delay_task_node DROP COLUMN leaving")
		wantSentence(t, refusal(t, db), "delay_task_node", "leaving", "migrate up")
		execute(t, db, "DROP TABLE delay_task_tag")
		wantSentence(t, refusal(t, db), "delay_task_", "migrate up")
		execute(t, db, "DROP VIEW delay_task_lateness")
		execute(t, db, "DROP TABLE delay_task_message")
		wantSentence(t, refusal(t, db), "delay_task_message", "missing", "migrate up")
	})
}

func TestOpenRefusesABodyLimitThatNoPacketOfTheServerHolds(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		open(t, d)
		cfg := config(t)
		cfg.BodyLimit = 1 << 30 // as large as any server's packets
		s, err := delaytask.New(t.Context(), pool(t, d), cfg)
		if err == nil {
			stop(t, s)
		}
		wantSentence(t, err, "BodyLimit", "1073741824 bytes", "max_allowed_packet", "lower")
	})
}
