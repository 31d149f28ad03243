//go:build !linux

package clock

// ThisMachine knows nothing: only Linux has a raw clock.
func ThisMachine() Machine { return Machine{} }
