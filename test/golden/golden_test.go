// Package golden holds what users, dashboards and log searches rely on: the public declarations, the log messages, the
// description of the API and the names of the metrics. DELAYTASK_UPDATE=1 writes the files anew.
package golden

import (
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
