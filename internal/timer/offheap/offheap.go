// Package offheap holds large arrays of plain values in memory that the garbage collector does not see. The collector
// lets its heap grow to twice what lives in it before it works: a large and lasting array there costs its size a second
// time, as room for garbage that never comes.
//
// Nobody frees such memory but its owner, and a later use of it crashes the process. So an array belongs in a type that
// hands out copies only. Neither GOMEMLIMIT nor the figures of the runtime count it.
package offheap

import (
	"sync/atomic"
	"unsafe"
)

// least is the size in bytes from which on an array comes from the system, which gives whole pages: 64 KiB, where they
// are largest.
const least = 64 << 10

var mapped atomic.Int64

// Make returns n zero values of a type that holds no pointers: the collector would not see what they point to. Small
// arrays, and all where the system gives nothing, are ordinary ones; they too are to be freed, which does nothing then.
func Make[T any](n int) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	if size < least {
		return make([]T, n)
	}
	memory, err := reserve(size)
	if err != nil {
		return make([]T, n)
	}
	mapped.Add(int64(size))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n)
}

// Free gives back what Make returned: the whole array, once, and nobody may use it any more.
func Free[T any](array []T) {
	var zero T
	size := len(array) * int(unsafe.Sizeof(zero))
	if size < least {
		return
	}
	if release(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(array))), size)) == nil {
		mapped.Add(-int64(size))
	}
}

// Mapped returns how many bytes are in use outside of the heap, for tests that look for what was not freed.
func Mapped() int64 { return mapped.Load() }
