package role

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
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
		tasks := make([]*task, Burst)
		for i := range tasks {
			body := deed{verb: succeed}.body(fmt.Sprintf("%s.burst%d.%d", v.diary.node, n, i))
			tasks[i] = &task{op: v.diary.op(), tag: Tags[0], body: body, due: due, patience: patient}
		}
		v.saveAll(tasks)
	}
}
