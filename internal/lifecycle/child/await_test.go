package child

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAChildWaitsUntilItIsLetGo(t *testing.T) {
	in, parent := io.Pipe()
	awaited := make(chan error)
	go func() {
		awaited <- Serve(t.Context(), in, io.Discard, func(ctx context.Context, _ struct{}, t *Narrator) error {
			return t.Await(ctx)
		})
	}()
	for _, word := range []string{"{}\n", "{}\n"} { // the order, and the permission to go on
		if _, err := io.WriteString(parent, word); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-awaited; err != nil {
		t.Errorf("it was let go: %v", err)
	}
	_ = parent.Close()
}

func TestAChildThatIsNeverLetGoEnds(t *testing.T) {
	err := Serve(t.Context(), strings.NewReader("{}\n"), io.Discard,
		func(ctx context.Context, _ struct{}, t *Narrator) error {
			return t.Await(ctx)
		})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it went: %v", err)
	}
}
