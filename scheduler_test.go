package delaytask

import "github.com/delaytask/delaytask/processor"

var _ processor.Scheduler = (*Scheduler)(nil)
