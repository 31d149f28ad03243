package main

import "time"

// scene is one task of the demo and what has to become of it.
type scene struct {
	Name  string // the task's key, except for the one that plain SQL saves
	Tag   string
	Delay time.Duration
	TTR   time.Duration

	moved    time.Duration // rescheduled to this delay
	fails    int           // attempts that fail before one succeeds
	killed   bool          // its process is killed in the middle of it
	cancels  bool
	plainSQL bool
}

// script is in the order of the due times. The one with plain SQL is due later than two look-aheads, as a task has to
// be that another process saved and that shall be on time.
var script = []scene{
	{Name: "order-1001", Tag: "order.close", Delay: 300 * time.Millisecond},
	{Name: "order-1002", Tag: "order.close", Delay: 900 * time.Millisecond},
	{Name: "welcome-7", Tag: "mail.send", Delay: 1200 * time.Millisecond, fails: 2},
	{Name: "order-1003", Tag: "order.close", Delay: 1500 * time.Millisecond, moved: 5500 * time.Millisecond},
	{Name: "coupon-9", Tag: "coupon.expire", Delay: 2 * time.Second, cancels: true},
	{Name: "invoice-3", Tag: "invoice.send", Delay: 2500 * time.Millisecond, plainSQL: true},
	{Name: "sales-2026", Tag: "report.build", Delay: 3 * time.Second, TTR: time.Second, killed: true},
	{Name: "order-1004", Tag: "order.close", Delay: 4500 * time.Millisecond},
}

const (
	mailBackoff = 500 * time.Millisecond
	reportTakes = 1500 * time.Millisecond
	killAfter   = 500 * time.Millisecond // of the report's start
)

// runs is how often the processor of the scene is called.
func (s *scene) runs() int {
	switch {
	case s.cancels:
		return 0
	case s.killed:
		return 2
	default:
		return s.fails + 1
	}
}

func (s *scene) attempts() int { return s.fails + 1 }

func tagsOf(scenes []scene) (tags []string) {
	seen := map[string]bool{}
	for _, s := range scenes {
		if !seen[s.Tag] {
			seen[s.Tag] = true
			tags = append(tags, s.Tag)
		}
	}
	return tags
}
