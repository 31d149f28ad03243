// Package offheap holds large arrays of plain values in memory that the garbage collector does not see. The collector
// lets its heap grow to twice what lives in it before it works: a large and lasting array there costs its size a second
// time, as room for garbage that never comes.
//
// Only its owner frees such memory, and a later use crashes the process. So an array belongs in a type that returns
// copies only. Neither GOMEMLIMIT nor the figures of the runtime count it.
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
// arrays are ordinary ones, and so are all where the system gives no memory. To free those does nothing.
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

// Free returns the memory of an array of Make: the whole array, once. The array must not be used afterwards.
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
