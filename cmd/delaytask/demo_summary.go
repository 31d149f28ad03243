package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/view"
)

// demoSummary is the result by the rows and the workers' clocks.
type demoSummary struct {
	Saved       int          `json:"saved"`
	Completed   int          `json:"completed"`
	Failed      int          `json:"failed"`
	Cancelled   int          `json:"cancelled"`
	Rescheduled int          `json:"rescheduled"`
	Duplicates  int          `json:"duplicates_refused"`
	Retries     int          `json:"retries"`
	Rescued     int          `json:"rescued"`
	Lost        int          `json:"lost"`
	Early       int          `json:"early"`
	Lateness    demoLateness `json:"lateness_ms,omitzero"` // of first attempts whose process was not killed
	Tags        []*demoTag   `json:"tags"`
	Wrong       []string     `json:"wrong,omitempty"` // what did not happen as the script says
	onTime      []time.Duration
}

type demoTag struct {
	Tag       string       `json:"tag"`
	Saved     int          `json:"saved"`
	Completed int          `json:"completed"`
	Failed    int          `json:"failed"`
	Cancelled int          `json:"cancelled"`
	Lateness  demoLateness `json:"lateness_ms,omitzero"` // absent where nothing has run
	late      []time.Duration
}

type demoLateness struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// summary reads every row back.
func (p *play) summary(ctx context.Context) (*demoSummary, error) {
	s := &demoSummary{}
	byTag := map[string]*demoTag{}
	for _, tag := range tagsOf(script) {
		byTag[tag] = &demoTag{Tag: tag}
		s.Tags = append(s.Tags, byTag[tag])
	}
	for i := range script {
		for _, id := range p.idsOf(&script[i]) {
			task, err := p.operator.Get(ctx, delaytask.ID(id))
			if err != nil {
				return nil, err
			}
			s.count(&script[i], &task, byTag[script[i].Tag])
			s.check(&script[i], &task, p.startsOf(script[i].Name))
		}
		if script[i].killed && p.workersOf(script[i].Name) != 2 {
			s.wrong("%s was not taken over by another process", script[i].Name)
		}
	}
	for _, e := range p.starts {
		if p.offset.early(e.At, e.Due) {
			s.Early++
			s.wrong("%s started before it was due", e.Name)
		}
	}
	if p.refused {
		s.Duplicates++
	}
	s.Lateness = measured(s.onTime)
	for _, tag := range s.Tags {
		tag.Lateness = measured(tag.late)
	}
	return s, nil
}

func (s *demoSummary) count(scene *scene, task *delaytask.TaskRow, tag *demoTag) {
	s.Saved++
	tag.Saved++
	switch task.Status {
	case delaytask.Completed:
		s.Completed++
		tag.Completed++
	case delaytask.Failed:
		s.Failed++
		tag.Failed++
	case delaytask.Cancelled:
		s.Cancelled++
		tag.Cancelled++
	default:
		s.Lost++
	}
	s.Retries += max(0, task.Attempt-1)
	s.Rescued += task.CrashCount
	if scene.moved != 0 {
		s.Rescheduled++
	}
	if task.Started.IsZero() {
		return
	}
	tag.late = append(tag.late, task.Lateness())
	if !scene.killed {
		s.onTime = append(s.onTime, task.Lateness())
	}
}

// check compares a row with what the script says.
func (s *demoSummary) check(scene *scene, task *delaytask.TaskRow, starts int) {
	status, crashes := delaytask.Completed, 0
	if scene.cancels {
		status = delaytask.Cancelled
	}
	if scene.killed {
		crashes = 1
	}
	if task.Status != status {
		s.wrong("%s is %s, not %s", scene.Name, task.Status, status)
	}
	if starts != scene.runs() {
		s.wrong("%s was started %d times, not %d", scene.Name, starts, scene.runs())
	}
	if !scene.cancels && task.Attempt != scene.attempts() {
		s.wrong("%s needed %d attempts, not %d", scene.Name, task.Attempt, scene.attempts())
	}
	if task.CrashCount != crashes {
		s.wrong("%s lost its process %d times, not %d", scene.Name, task.CrashCount, crashes)
	}
}

func (s *demoSummary) wrong(format string, args ...any) {
	s.Wrong = append(s.Wrong, fmt.Sprintf(format, args...))
}

// measured takes the nearest rank: every figure is one that was measured.
func measured(late []time.Duration) demoLateness {
	if len(late) == 0 {
		return demoLateness{}
	}
	late = slices.Sorted(slices.Values(late))
	rank := func(percent int) float64 { return view.Milliseconds(late[(len(late)*percent+99)/100-1]) }
	return demoLateness{P50: rank(50), P99: rank(99), Max: rank(100)}
}

func (s *demoSummary) print(w io.Writer, on screen) error {
	var out strings.Builder // one write, one error
	const chapter = "4. What the table says now. LATE is execution_time - expected_time of the rows."
	fmt.Fprintf(&out, "\n%s\n\n", on.paint(chapter, bold))
	t := newTable(&out, screen{colour: on.colour}, "   TAG", "SAVED", "COMPLETED", "FAILED", "CANCELLED",
		"LATE P50", "P99", "MAX")
	for _, tag := range s.Tags {
		t.row(append([]string{"   " + tag.Tag, strconv.Itoa(tag.Saved), strconv.Itoa(tag.Completed),
			strconv.Itoa(tag.Failed), strconv.Itoa(tag.Cancelled)}, tag.Lateness.cells(len(tag.late))...)...)
	}
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Fprintf(&out, `
   %d saved, %d completed, %d retries, %d cancelled, %d rescheduled, %d duplicate refused, %d rescued.
   %d lost, %d early. Late, without the killed task: p50 %.1f ms, p99 %.1f ms, max %.1f ms.
`, s.Saved, s.Completed, s.Retries, s.Cancelled, s.Rescheduled, s.Duplicates, s.Rescued, s.Lost, s.Early,
		s.Lateness.P50, s.Lateness.P99, s.Lateness.Max)
	out.WriteString(whatNext)
	if _, err := io.WriteString(raw(w), out.String()); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func (l demoLateness) cells(samples int) []string {
	if samples == 0 {
		return []string{"", "", ""}
	}
	cell := func(ms float64) string { return strconv.FormatFloat(ms, 'f', 1, 64) + " ms" }
	return []string{cell(l.P50), cell(l.P99), cell(l.Max)}
}

const whatNext = `
What to do next
   delaytask migrate up --dsn 'user:password@tcp(host:3306)/name'   create the tables there
   delaytask save order.close '{"order":42}' --delay 30m            save a task; add --dsn
   delaytask explain ID                                             ask why it has not run
   go doc github.com/delaytask/delaytask                            run tasks in your own service
`

// offset is how far a server's clock is ahead of this machine's: between least and most. Workers report starts by the
// clock of this machine, tasks are due by the server's.
type offset struct{ least, most time.Duration }

const offsetReadings = 10

// measureOffset narrows the bounds with every reading: the server read its clock between the request and the reply.
func measureOffset(ctx context.Context, db *sql.DB) (offset, error) {
	bounds := offset{least: math.MinInt64, most: math.MaxInt64}
	for range offsetReadings {
		var text string
		sent := time.Now()
		err := db.QueryRowContext(ctx, "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)").Scan(&text)
		received := time.Now()
		if err != nil {
			return offset{}, fmt.Errorf("read the server's clock: %w", err)
		}
		server, err := time.Parse("2006-01-02 15:04:05.000000", text)
		if err != nil {
			return offset{}, fmt.Errorf("read the server's clock: %w", err)
		}
		bounds.least = max(bounds.least, server.Sub(received))
		bounds.most = min(bounds.most, server.Sub(sent))
	}
	return bounds, nil
}

// late is the best guess of how long after due a moment of this machine was.
func (o offset) late(at, due time.Time) time.Duration {
	return max(at.Sub(due)+o.middle(), 0)
}

// early reports whether a moment of this machine was certainly before due.
func (o offset) early(at, due time.Time) bool { return at.Add(o.most).Before(due) }

func (o offset) middle() time.Duration { return o.least + (o.most-o.least)/2 }
