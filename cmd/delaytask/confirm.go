package main

import (
	"bufio"
	"context"
	"errors"
	"strings"
)

var errDeclined = errors.New("nothing was changed; add --yes to go on without being asked")

// confirm asks a person. Whoever calls it has made sure that there is one.
func (a *app) confirm(ctx context.Context, question string) error {
	a.note("%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a read cannot be interrupted: on Ctrl-C the goroutine is left behind, and ends with the process
		line, _ := bufio.NewReader(a.stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-answer:
		if line == "y" || line == "yes" {
			return nil
		}
		return errDeclined
	case <-ctx.Done():
		a.note("\n")
		return context.Cause(ctx)
	}
}
