package store

import (
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
