package main

import (
	"os"
	"runtime/pprof"
)

// profiled writes a CPU profile until stop is called.
func profiled(file string) (stop func(), err error) {
	w, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = w.Close() }, pprof.StartCPUProfile(w)
}
