package judge

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// clean is the verdict of a story without violations.
const clean Invariant = -1

// stories violate an invariant, or nearly do.
var stories = []struct {
	name     string
	violated Invariant
	told     *story
}{
	{"a task is saved, runs and completes", clean, tell().save(0, 1, "a").run(1, "a").over().row(1, 2, completed, "a")},

	{"a task runs with another body", 0, tell().claimed(1).start(2.01, "n", 1, 1, "b")},
	{"a row without a save", 0, tell().insert(0, 1, "a", "")},
	{"a row with another key", 0, tell().call(0, "a", "k", 0).insert(0, 1, "a", "")},
	{"a row whose saver crashed before it was answered", clean, tell().
		call(0, "a", "", 0).insert(0, 1, "a", "").run(1, "a")},

	{"an accepted task is not in the table", 1, tell().save(0, 1, "a").save(0, 2, "b").row(2, 0, pending, "b")},
	{"an accepted task was never written", 1, tell().call(0, "a", "", 0).answer(1, "a", 1, journal.OK)},
	{"an id is given to two savers", 1, tell().save(0, 1, "a").call(0, "b", "", 0).answer(1, "b", 1, journal.OK)},
	{"a refused task is not in the table", clean, tell().
		call(0, "a", "", 0).answer(1, "a", 0, journal.Refused).save(0, 2, "b").row(2, 0, pending, "b")},

	{"an unknown outcome without an id", 2, tell().call(0, "a", "", 0).answer(1, "a", 0, journal.Unknown)},
	{"a task is stored twice", 2, tell().call(0, "a", "", 0).insert(0, 1, "a", "").insert(0, 2, "a", "")},
	{"what was refused is stored", 2, tell().
		call(0, "a", "", 0).insert(0, 1, "a", "").answer(1, "a", 0, journal.Refused)},
	{"an unknown save is refused when it is saved again, and stored", 2, tell().
		call(0, "a", "", 0).answer(1, "a", 1, journal.Unknown).call(2, "a", "", 1).answer(3, "a", 0, journal.Refused).
		insert(4, 1, "a", "")},
	{"an unknown save is stored, and accepted when it is saved again", clean, tell().
		call(0, "a", "", 0).answer(1, "a", 1, journal.Unknown).insert(1.5, 1, "a", "").call(2, "a", "", 1).
		answer(3, "a", 1, journal.OK)},
	{"an unknown save meets its key when it is saved again, and is stored when that is free", clean, tell().
		saveKey(0, 1, "a", "k").call(0, "b", "k", 0).answer(1, "b", 2, journal.Unknown).call(1.5, "b", "k", 2).
		answer(2, "b", 1, journal.Duplicate).run(1, "a").insert(3, 2, "b", "k")},
	{"a save that meets its key at once is stored when that is free", 2, tell().
		saveKey(0, 1, "a", "k").call(0, "b", "k", 0).answer(2, "b", 1, journal.Duplicate).run(1, "a").
		insert(3, 2, "b", "k")},
	{"a duplicate names a task that had ended", 2, tell().
		saveKey(0, 1, "a", "k").run(1, "a").call(3, "b", "k", 0).answer(4, "b", 1, journal.Duplicate)},
	{"a duplicate names a task that ended while it was saved", clean, tell().
		saveKey(0, 1, "a", "k").call(2.4, "b", "k", 0).write(2.45, 1, 1, executing, 1, 0, 6).
		write(2.5, 1, 2, cancelled, 1, 0, 2.5).cancel(2.2, journal.Unknown).answer(4, "b", 1, journal.Duplicate)},
	{"a duplicate names a task with another key", 2, tell().
		saveKey(0, 1, "a", "other").call(1, "b", "k", 0).answer(2, "b", 1, journal.Duplicate)},
	{"a cancel is accepted and has not happened", 2, tell().save(0, 1, "a").cancel(1, journal.OK).run(1, "a")},
	{"a cancel is accepted", clean, tell().
		save(0, 1, "a").cancel(1, journal.OK).write(1.05, 1, 1, cancelled, 0, 0, 1.05)},
	{"a reschedule is accepted after another one happened", 2, tell().
		save(0, 1, "a").write(.5, 1, 1, pending, 0, 0, 9).reschedule(1, journal.OK)},
	{"a retry is accepted and the task stays failed", 2, tell().
		save(0, 1, "a").op(1, journal.CallRetry, journal.ReturnRetry, journal.OK)},
	{"a task that is there is not found", 2, tell().save(0, 1, "a").cancel(1, journal.NotFound)},

	{"a task is cancelled unasked", 3, tell().save(0, 1, "a").write(1, 1, 1, cancelled, 0, 0, 1)},
	{"a task is failed with attempts left", 3, tell().
		save(0, 1, "a").write(2.01, 1, 1, executing, 2, 0, 6).start(2.01, "n", 1, 1, "a").ends(journal.Failed).
		write(2.2, 1, 2, failed, 2, 0, 2.2)},
	{"a task is failed by its last attempt", clean, tell().
		running(3).ends(journal.Failed).write(2.2, 1, 2, failed, 3, 0, 2.2)},
	{"a task is failed by a permanent error", clean, tell().
		running(1).ends(journal.Permanent).write(2.2, 1, 2, failed, 1, 0, 2.2)},
	{"a task is quarantined one crash too early", 3, tell().
		save(0, 1, "a").write(2.01, 1, 1, executing, 1, 3, 6).write(7, 1, 2, failed, 0, 4, 7)},

	{"a task is completed twice", 4, tell().save(0, 1, "a").run(1, "a").write(3, 1, 3, completed, 1, 0, 3)},
	{"a late executor completes what another one runs", 4, tell().
		running(1).write(6.1, 1, 2, pending, 0, 1, 6.1).write(6.2, 1, 3, executing, 1, 1, 10).
		start(6.2, "m", 1, 3, "a").end(7, "n", 1, 1, "a", journal.OK).write(7, 1, 4, completed, 1, 1, 7)},
	{"a late executor changes nothing", clean, tell().
		running(1).write(6.1, 1, 2, pending, 0, 1, 6.1).write(6.2, 1, 3, executing, 1, 1, 10).
		start(6.2, "m", 1, 3, "a").end(7, "n", 1, 1, "a", journal.OK).end(8, "m", 1, 3, "a", journal.OK).
		write(8, 1, 4, completed, 1, 1, 8)},
	{"the holder of the token completes it", clean, tell().
		running(1).ends(journal.HandedOver).add(3, "m", journal.CallFinish, journal.Event{ID: 1, Version: 1}).
		write(3, 1, 2, completed, 1, 0, 3)},
	{"the holder of an old token completes it", 4, tell().
		running(1).add(3, "m", journal.CallFinish, journal.Event{ID: 1, Version: 0}).
		write(3, 1, 2, completed, 1, 0, 3)},
	{"a task that is executing is claimed", 4, tell().claimed(1).write(2.02, 1, 2, executing, 2, 0, 6)},
	{"a version is written twice", 4, tell().claimed(1).write(2.02, 1, 1, executing, 1, 0, 6)},
	{"a version is left out", 4, tell().save(0, 1, "a").write(2.01, 1, 2, executing, 1, 0, 6)},
	{"a claim is executed twice", 4, tell().save(0, 1, "a").run(1, "a").start(2.2, "m", 1, 1, "a")},
	{"a task runs that was not claimed", 4, tell().save(0, 1, "a").start(2.2, "m", 1, 1, "a")},
	{"the table differs from the last transition", 4, tell().save(0, 1, "a").run(1, "a").row(1, 2, failed, "a")},

	{"a task starts a microsecond early", 5, tell().
		save(0, 1, "a").write(2, 1, 1, executing, 1, 0, 6).start(2.009999, "n", 1, 1, "a")},
	{"a task starts before its expected time, due by another clock", clean, tell().claimed(1).startBehind()},
	{"a task starts before its expected time, due by no clock", 5, tell().
		save(0, 1, "a").write(2.01, 1, 1, pending, 0, 0, 1.5).startBehind()},
	{"a processor is told an earlier time than the table's", 5, tell().
		save(0, 1, "a").write(1, 1, 1, pending, 0, 0, 9).reschedule(1, journal.OK).write(2, 1, 2, executing, 1, 0, 6).
		start(2.1, "n", 1, 2, "a")},
	{"a task starts by the database's clock, which is ahead", clean, tell().
		save(0, 1, "a").write(1, 1, 1, executing, 1, 0, 6).
		dueAt2(1.5, 2.01)},
	{"a task is tried again by another clock than it was saved by", clean, tell().
		running(1).ends(journal.Failed).write(2.2, 1, 2, pending, 1, 0, 1).write(3, 1, 3, executing, 2, 0, 5).
		add(3, "n", journal.RunStart, journal.Event{
			ID: 1, Version: 3, Tag: "t", Body: "a", Due: at(1), Expected: at(2.01), Clock: at(1.1),
		})},
	{"a task starts by the machine's clock, and the database's is behind", 5, tell().
		save(0, 1, "a").write(1, 1, 1, executing, 1, 0, 6).
		dueAt2(2.5, 2)},
	{"a task is expected when the second try asked for it, by another clock", clean, tell().
		call(3, "a", "", 0).answer(3.1, "a", 1, journal.Unknown).call(0, "a", "", 1).insert(3.2, 1, "a", "")},
	{"a server whose clock is behind takes over during a save", clean, tell().saveOver(2, 2.1)},
	{"a task is expected too early by the clock of the server that takes over", 5, tell().saveOver(2, 1.9)},
	{"a task is expected too early by the clocks of both servers", 5, tell().saveOver(-2, -.1)},
	{"a task is expected too early", 5, tell().call(0.02, "a", "", 0).insert(0.01, 1, "a", "")},

	{"a task is not taken when the faults are over", 7, tell().
		save(0, 1, "a").over().write(27.1, 1, 1, executing, 1, 0, 31).write(28, 1, 2, cancelled, 1, 0, 28).
		cancel(27.5, journal.Unknown)},
	{"a task is taken within the bound", clean, tell().save(0, 1, "a").over().completes(26.9, 27, "n", 1, 0)},
	{"a task is taken within the bound of many", clean, tell().
		nodes(25).save(0, 1, "a").over().completes(30.9, 31, "n", 1, 0)},
	{"a task is taken within the bound of many by fewer", 7, tell().
		nodes(24).save(0, 1, "a").over().completes(30.9, 31, "n", 1, 0)},
	{"the only process that serves a tag comes back after the faults", clean, tell().
		save(0, 1, "a").add(1, "n", journal.NodeStart, journal.Event{Detail: "s t"}).
		add(2, "n", journal.NodeCrash, journal.Event{}).over().
		add(25, "o", journal.NodeStart, journal.Event{Detail: "t"}).completes(30.9, 31, "o", 1, 0)},
	{"a task waits for a process to come back although another one serves it", 7, tell().
		save(0, 1, "a").add(1, "n", journal.NodeStart, journal.Event{Detail: "s t"}).over().
		add(25, "o", journal.NodeStart, journal.Event{Detail: "t"}).completes(30.9, 31, "o", 1, 0)},
	{"a task is never taken", 7, tell().save(0, 1, "a").over()},
	{"a task is due when all is over", clean, tell().
		save(0, 1, "a").write(1, 1, 1, pending, 0, 0, 59).reschedule(.9, journal.OK).over()},

	{"the task of a node that crashed is not rescued", 8, tell().
		running(1).add(3, "n", journal.NodeCrash, journal.Event{}).over()},
	{"a rescue costs an attempt", 8, tell().claimed(1).write(6.1, 1, 2, pending, 1, 1, 6.1)},
	{"a lease is taken before it is over", 8, tell().claimed(1).write(5.9, 1, 2, pending, 0, 1, 5.9)},
	{"a lease is taken that was moved", 8, tell().
		claimed(1).add(5, "db", journal.Lease, journal.Event{ID: 1, Version: 1, Due: at(9)}).
		write(6.1, 1, 2, pending, 0, 1, 6.1)},
	{"a task is quarantined for its own losses", clean, tell().quarantine(false)},
	{"a task is quarantined beside one that never crashed", clean, tell().quarantine(false).neighbour("n3", 0, 20)},
	{"a task is quarantined after a task on probation whose result was stored", clean, tell().
		quarantine(false).neighbour("n3", 2, 5.4)},
	{"a task is quarantined that met its first loss on probation beside another", clean, tell().
		quarantine(false).neighbour("n2", 2, 20)},
	{"a task is quarantined that met its second loss on probation beside another", 8, tell().
		quarantine(false).neighbour("n3", 2, 20)},
	{"a task is quarantined that was on probation beside one that should have run solo", 8, tell().
		quarantine(false).neighbour("n2", 3, 20)},
	{"a task is quarantined beside one on probation that had returned and whose lease was over", clean, tell().
		quarantine(false).outlasted(true, 5.4)},
	{"a task is quarantined beside one on probation that had returned and whose lease was not over", 8, tell().
		quarantine(false).outlasted(true, 5.6)},
	{"a task is quarantined beside one on probation that had returned, its lease moved without a trace", 8, tell().
		quarantine(false).outlasted(true, 0)},
	{"a task is quarantined beside one on probation that still ran when its lease was over", 8, tell().
		quarantine(false).outlasted(false, 5.4)},
	{"a task is quarantined whose process was cut off, and crashed beside another later", clean, tell().
		quarantine(false).neighbour("n3", 2, 20).outlives("n3", 8)},
	{"a task is quarantined that had returned each time", 8, tell().quarantine(true)},
	{"a task is quarantined that had returned each time, once as its process was killed from outside", clean, tell().
		quarantine(true).hurt("n3", "kill", journal.OK)},
	{"a task is quarantined that had returned each time, once as its process was hurt and not killed", 8, tell().
		quarantine(true).hurt("n3", "partition", journal.OK)},
	{"a task is quarantined that had returned each time, and a kill met nothing", 8, tell().
		quarantine(true).hurt("n3", "kill", journal.Refused)},
	{"a task is quarantined that had returned each time, and another process was killed", 8, tell().
		quarantine(true).hurt("n9", "kill", journal.OK)},
	{"a lease is left alone for longer than executors need", 8, tell().
		claimed(1).write(28.5, 1, 2, pending, 0, 1, 28.5).completes(28.6, 29, "n", 3, 1).over()},
	{"a lease is left alone while its executor may come back", clean, tell().
		claimed(1).write(27.5, 1, 2, pending, 0, 1, 27.5).completes(27.6, 28, "n", 3, 1).over()},
	{"a lease is moved long after its end, and was not ended", 8, tell().moveLate(28.5)},
	{"a lease is moved after its end, before it had to be ended", clean, tell().moveLate(27.5)},
	{"a lease is taken in time after the faults", clean, tell().
		running(1).add(20.5, "n", journal.NodeCrash, journal.Event{}).over().write(29, 1, 2, pending, 0, 1, 29).
		completes(30, 31, "m", 3, 1)},

	{"two unfinished tasks carry a key", 10, tell().saveKey(0, 1, "a", "k").saveKey(1, 2, "b", "k")},
	{"a retried task carries the key of another", 10, tell().
		saveKey(0, 1, "a", "k").write(2.01, 1, 1, executing, 3, 0, 6).start(2.01, "n", 1, 1, "a").ends(journal.Failed).
		write(2.2, 1, 2, failed, 3, 0, 2.2).saveKey(3, 2, "b", "k").write(4, 1, 3, pending, 0, 0, 4)},
	{"a key is free when its task has run", clean, tell().
		saveKey(0, 1, "a", "k").run(1, "a").saveKey(2.51, 2, "b", "k")},
	{"a key is free when its task has ended", clean, tell().
		saveKey(0, 1, "a", "k").cancel(1, journal.OK).write(1.01, 1, 1, cancelled, 0, 0, 1.01).
		saveKey(1.01, 2, "b", "k")},

	{"a task waits for its next run, and another one has its key", 10, tell().holdKey(4.5)},
	{"a task is cancelled in its second run, and another one has its key", clean, tell().holdKey(6)},

	{"a graceful stop burns an attempt", 11, tell().
		running(1).ends(journal.Interrupted).write(2.2, 1, 2, pending, 1, 0, 2.2)},
	{"an attempt is spent that was not used", 11, tell().claimed(1).write(2.2, 1, 2, pending, 1, 0, 2.2)},
	{"an attempt is spent that failed", clean, tell().
		running(1).ends(journal.Panicked).write(2.2, 1, 2, pending, 1, 0, 3)},
	{"two attempts are given back for one", 11, tell().claimed(3).write(2.2, 1, 2, pending, 1, 0, 2.2)},
	{"a node leaves what it ran to a rescue", 11, tell().
		running(1).add(3, "n", journal.NodeStop, journal.Event{}).add(4, "n", journal.NodeStopped, journal.Event{}).
		write(6.1, 1, 2, pending, 0, 1, 6.1)},
	{"a node leaves what it ran to a rescue because of a fault", clean, tell().
		running(1).add(2.5, "n", journal.FaultBegin, journal.Event{Op: "f", Detail: "partition"}).
		add(3, "n", journal.NodeStop, journal.Event{}).add(4, "n", journal.NodeStopped, journal.Event{}).
		write(6.1, 1, 2, pending, 0, 1, 6.1)},
	{"what a node did after its crash does not count", clean, tell().
		save(0, 1, "a").add(1, "m", journal.NodeCrash, journal.Event{}).start(1.5, "m", 1, 1, "b").run(1, "a")},
}

func TestStories(t *testing.T) {
	t.Parallel()
	for _, c := range stories {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			verdict := Judge(journal.Merge(c.told.events), rules)
			if (len(verdict.Violations) == 0) != (c.violated == clean) {
				t.Errorf("want a violation of %d (%d: none), got %v", c.violated, clean, verdict.Violations)
			}
			for _, v := range verdict.Violations {
				if v.Invariant != c.violated || len(v.Events) == 0 {
					t.Errorf("want a violation of %d, no other, and events that show it: %v", c.violated, v)
				}
			}
		})
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	s := tell().running(1).end(5, "n", 1, 1, "a", journal.OK).add(5, "n", journal.NodeCrash, journal.Event{}).
		write(6.1, 1, 2, pending, 0, 1, 6.1).completes(6.2, 7, "m", 3, 1).
		add(8, "m", journal.NodeStop, journal.Event{}).
		add(8, "m", journal.FaultBegin, journal.Event{Detail: "partition"})
	got := Judge(s.events, rules).Counts
	want := Counts{
		Tasks: 1, Accepted: 1, Executions: 2, Extra: 1, Completed: 1, Rescued: 1, Crashes: 1, Stops: 1,
		Faults: map[string]int{"partition": 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got.Faults = maps.Clone(got.Faults)
	if got.Add(want); got.Executions != 4 || got.Faults["partition"] != 2 {
		t.Errorf("the sum of two: %+v", got)
	}
}

// Others see a transaction's writes when it is committed, which a slow database does later.
func TestTransitionIsSeenWhenItIsCommitted(t *testing.T) {
	t.Parallel()
	s := tell().saveKey(0, 1, "a", "k").run(1, "a").call(4, "b", "k", 0).answer(5, "b", 1, journal.Duplicate)
	for commit, want := range map[time.Duration]int{0: 1, 10 * time.Second: 0} {
		slow := rules
		slow.Commit = commit
		if got := Judge(s.events, slow).Violations; len(got) != want {
			t.Errorf("with commits of %v: %v, want %d", commit, got, want)
		}
	}
}
