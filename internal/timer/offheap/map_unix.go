//go:build unix

package offheap

import "golang.org/x/sys/unix"

func reserve(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// release refuses what reserve did not return: unix.Munmap knows all that unix.Mmap gave. So an ordinary array stays
// the collector's.
func release(memory []byte) error { return unix.Munmap(memory) }
