//go:build !linux

package main

import (
	"errors"
	"fmt"
	"time"
)

var errNotMeasured = fmt.Errorf("memory and CPU are measured on Linux only: %w", errors.ErrUnsupported)

func cpuTime() (time.Duration, error) { return 0, errNotMeasured }

func residentMemory() (now, peak int64, err error) { return 0, 0, errNotMeasured }
