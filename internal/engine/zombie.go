package engine

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strconv"
)

// Every processor runs under these labels of runtime/pprof: they show in profiles, and find the stack of one that does
// not return.
const (
	labelTag  = "delaytask_tag"
	labelTask = "delaytask_task"
)

func labels(u *attempt) pprof.LabelSet {
	return pprof.Labels(labelTag, u.row.Tag, labelTask, strconv.FormatInt(u.row.ID, 10))
}

// labelled calls f under the labels of the task.
func labelled(ctx context.Context, u *attempt, f func(context.Context)) {
	pprof.Do(ctx, labels(u), f)
}

// stackOf returns where the task's processor is, or "" when it has returned.
func stackOf(u *attempt) string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return ""
	}
	label := []byte(strconv.Quote(labelTask) + ":" + strconv.Quote(strconv.FormatInt(u.row.ID, 10)))
	for stack := range bytes.SplitSeq(all.Bytes(), []byte("\n\n")) {
		if bytes.Contains(stack, label) {
			return string(stack)
		}
	}
	return ""
}
