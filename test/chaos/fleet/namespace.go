package fleet

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// enter moves the calling thread, which must be locked, into a network that `ip netns` has made.
func enter(namespace string) error {
	file, err := os.Open(filepath.Join("/run/netns", namespace))
	if err != nil {
		return fmt.Errorf("enter a network: %w", err)
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network %s: %w", namespace, err)
	}
	return nil
}
