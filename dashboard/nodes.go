package dashboard

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// nodesPage is the processes that share the database.
type nodesPage struct {
	Nodes    []node
	States   map[string]int // how many nodes are in each state
	InFlight int
	More     bool // more tasks are in flight than were read
	Lost     int  // tasks in flight of processes that are not listed
	Part     bool // the user sees some tags only
}

// node is a process with what it executes.
type node struct {
	report.Node
	InFlight int
	Popped   int // of these: handed to clients by pops
	Late     int // of these: their leases are over

	running []row.State
}

// State is a word for how a node does: alive, leaving or silent.
func (n node) State() string {
	switch {
	case !n.Alive:
		return "silent"
	case n.Leaving:
		return "leaving"
	default:
		return "alive"
	}
}

// Unreachable lists the nodes whose wake-ups do not arrive.
func (n node) Unreachable() string {
	numbers := make([]string, len(n.UnreachableFrom))
	for i, number := range n.UnreachableFrom {
		numbers[i] = strconv.Itoa(number)
	}
	return strings.Join(numbers, ", ")
}

const (
	tasksOfNode  = 100
	mostInFlight = 5000   // tasks whose executors are read
	mostLeases   = 50_000 // entries of the index that they are chosen of
	// mostTagsInFlight is how many tags are read, those whose leases end first.
	mostTagsInFlight = 500
)

// nodes shows the processes.
func (v *view) nodes() (any, error) {
	all, rest, more, err := v.readNodes()
	if err != nil {
		return nil, err
	}
	shown := nodesPage{
		Nodes: all, States: map[string]int{}, More: more, Lost: len(rest), InFlight: len(rest),
		Part: !v.allTags(access.Observe),
	}
	for i := range all {
		shown.States[all[i].State()]++
		shown.InFlight += all[i].InFlight
	}
	return shown, nil
}

// readNodes reads the processes and what each executes. The rest is what processes execute that are not listed.
func (v *view) readNodes() (all []node, rest []row.State, more bool, err error) {
	found, tokens, err := v.look().Nodes(v.r.Context())
	if err != nil {
		return nil, nil, false, err
	}
	running, more, err := v.inFlight()
	if err != nil {
		return nil, nil, false, err
	}
	now := row.At(v.Now)
	for i, n := range found {
		one := node{Node: n, running: running[tokens[i]]}
		delete(running, tokens[i])
		one.InFlight = len(one.running)
		for _, s := range one.running {
			if s.Executor.Popped() {
				one.Popped++
			}
			if s.Due < now {
				one.Late++
			}
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b node) int { // those that need attention come first
		return cmp.Or(-cmp.Compare(a.State(), b.State()), cmp.Compare(a.Name, b.Name))
	})
	for _, of := range running {
		rest = append(rest, of...)
	}
	return all, rest, more, nil
}

// inFlight reads the executing tasks whose leases end first, by the tokens of their processes. It reports whether there
// are more.
func (v *view) inFlight() (running map[string][]row.State, more bool, err error) {
	ctx := v.r.Context()
	tags, err := v.store.Oldest(ctx, row.Executing)
	if err != nil {
		return nil, false, err
	}
	tags = slices.DeleteFunc(tags, func(t row.TagCount) bool { return !v.Caller.May(access.Observe, t.Tag) })
	first := listing.Foremost(tags, mostTagsInFlight)
	more = len(first) < len(tags)
	var spans []row.Span
	for _, i := range first {
		spans = append(spans, row.Span{Status: row.Executing, Tag: tags[i].Tag})
	}
	if len(spans) == 0 {
		return nil, false, nil
	}
	ofTag := max(1, min(mostInFlight, mostLeases/len(spans)))
	lists, err := v.store.Places(ctx, spans, ofTag)
	if err != nil {
		return nil, false, err
	}
	for _, list := range lists {
		more = more || len(list) == ofTag
	}
	places := slices.Concat(lists...)
	slices.SortFunc(places, row.Place.Compare)
	if len(places) > mostInFlight {
		places, more = places[:mostInFlight], true
	}
	ids := make([]int64, len(places))
	for i, p := range places {
		ids[i] = p.ID
	}
	states, err := v.store.States(ctx, ids)
	if err != nil {
		return nil, false, err
	}
	running = map[string][]row.State{}
	for _, s := range states {
		if s.Status == row.Executing {
			token := s.Executor.Token()
			running[token] = append(running[token], s)
		}
	}
	return running, more, nil
}

// nodePage is one process.
type nodePage struct {
	Node  node
	Tasks []runningTask
	Left  int // tasks in flight that are not among Tasks
	More  bool
}

// runningTask is a task that a process executes.
type runningTask struct {
	ID      int64
	Tag     string
	Key     string
	Attempt int
	Most    int       // attempts
	Started time.Time // the first attempt
	Lease   time.Time // when it ends, unless it is renewed
	Popped  bool
}

// node shows one process, and the tasks that it executes whose leases end first.
func (v *view) node() (any, error) {
	number, err := strconv.Atoi(v.r.PathValue("number"))
	if err != nil {
		return nil, errNoNode
	}
	all, _, more, err := v.readNodes()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(n node) bool { return n.Number == number })
	if at < 0 {
		return nil, errNoNode
	}
	shown := nodePage{Node: all[at], More: more}
	readable := slices.DeleteFunc(all[at].running, func(s row.State) bool { return !v.Caller.May(access.Read, s.Tag) })
	slices.SortFunc(readable, func(a, b row.State) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
	})
	shown.Tasks, err = v.runningTasks(readable[:min(len(readable), tasksOfNode)])
	shown.Left = shown.Node.InFlight - len(shown.Tasks)
	return shown, err
}

func (v *view) runningTasks(states []row.State) (tasks []runningTask, err error) {
	ids := make([]int64, len(states))
	for i, s := range states {
		ids[i] = s.ID
	}
	rows, _, err := v.store.Rows(v.r.Context(), ids, false)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		at := slices.IndexFunc(rows, func(r row.Row) bool { return r.ID == s.ID })
		if at < 0 || rows[at].Version != s.Version { // it has ended meanwhile
			continue
		}
		r := &rows[at]
		tasks = append(tasks, runningTask{
			ID: r.ID, Tag: r.Tag, Key: row.OwnKey(row.DecodeHeaders(r.Headers)[delaytask.AppHeader], r.Key),
			Attempt: r.Attempt, Most: r.MaxAttempts, Started: r.Execution.Std(), Lease: r.Due.Std(),
			Popped: r.Executor.Popped(),
		})
	}
	return tasks, nil
}
