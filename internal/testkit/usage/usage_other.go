//go:build !linux

package usage

import (
	"errors"
	"fmt"
	"time"
)

var errNotMeasured = fmt.Errorf("memory and CPU are measured on Linux only: %w", errors.ErrUnsupported)

func CPU() (time.Duration, error) { return 0, errNotMeasured }

func Stolen() (stolen, all int64, err error) { return 0, 0, errNotMeasured }

func Memory() (now, peak int64, err error) { return 0, 0, errNotMeasured }

func CPUOf(int) (time.Duration, error) { return 0, errNotMeasured }

func Idle() (time.Duration, error) { return 0, errNotMeasured }

func ServerPID(string) (int, error) { return 0, errNotMeasured }
