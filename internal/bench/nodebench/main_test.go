package nodebench

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/bench/child"
)

const childArgument = "child"

// TestMain is also the program that a fleet starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		if err := child.Serve(context.Background(), os.Stdin, os.Stdout, serveOrder); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// order is what a process of the tests is to do.
type order struct {
	DSN  string
	Mute bool // end at once, without a word
}

func serveOrder(ctx context.Context, o order, t *child.Teller) error {
	if o.Mute {
		return nil
	}
	return Serve(ctx, o.DSN, tag, slog.New(slog.DiscardHandler), t)
}
