package operate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

func TestATimeoutOfTheDatabaseHasPlainWords(t *testing.T) {
	t.Parallel()
	p, known := Problem(fmt.Errorf("finish task 5: %w", context.DeadlineExceeded))
	if !known || p.Code != wire.CodeUnavailable || strings.Contains(p.Detail, "context") ||
		!strings.HasSuffix(p.Detail, "try again") {
		t.Errorf("got %+v", p)
	}
}
