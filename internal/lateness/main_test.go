package lateness

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }
