package role

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/journal"
)

// Burst is how many tasks a saver saves that are due in the same millisecond, when it gets the signal BurstSignal.
const (
	Burst       = 3000
	BurstSignal = syscall.SIGUSR1
)

// burstIn is when they are due: after the last of them has been stored, where nothing is in the way.
const burstIn = 4 * time.Second

// burst saves that many tasks as often as it is asked, until ctx ends; what is under way then is brought to its end.
func (v *saver) burst(ctx context.Context, asked <-chan os.Signal) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		due := time.Now().Add(v.ahead + burstIn).Truncate(time.Millisecond)
		saves := make([]burstSave, Burst)
		for i := range saves {
			unique := fmt.Sprintf("%s.burst%d.%d", v.diary.node, n, i)
			saves[i] = burstSave{body: deed{verb: succeed}.body(unique), due: due}
		}
		for saves = v.saveBurst(saves); len(saves) > 0; saves = v.saveBurst(saves) {
			<-time.After(again)
		}
	}
}

// burstSave is a task of a burst, with its id once that is known.
type burstSave struct {
	op, body string
	due      time.Time
	id       int64
}

// saveBurst saves all tasks with one call and returns those whose outcome is unknown, to be saved again under their ids.
func (v *saver) saveBurst(saves []burstSave) (unknown []burstSave) {
	items, calls := make([]delaytask.Item, len(saves)), make([]journal.Event, len(saves))
	for i := range saves {
		s := &saves[i]
		s.op = v.diary.op()
		options := []delaytask.Option{delaytask.WithTime(s.due)}
		if s.id != 0 {
			options = append(options, delaytask.WithID(s.id))
		}
		items[i] = delaytask.Item{Tag: Tags[0], Body: s.body, Options: options}
		calls[i] = journal.Event{Kind: journal.CallSave, Op: s.op, ID: s.id, Tag: Tags[0], Body: s.body, Expected: s.due}
	}
	v.diary.write(calls...)
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	results, err := v.SaveDelayTasks(ctx, items)
	answers := make([]journal.Event, len(saves))
	for i, s := range saves {
		r := delaytask.SaveResult{Err: err}
		if results != nil {
			r = results[i]
		}
		answers[i] = saveAnswer(s.op, r.ID, r.Err)
		if answers[i].Error == journal.Unknown {
			s.id = answers[i].ID
			unknown = append(unknown, s)
		}
	}
	v.diary.write(answers...)
	return unknown
}
