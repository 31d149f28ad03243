package offheap

import (
	"runtime"
	"testing"
)

func TestLargeArraysStandOutsideOfTheHeapUntilTheyAreFreed(t *testing.T) {
	const n, size = 1 << 20, 8 << 20
	before, mapped := collected(), Mapped()
	array := Make[uint64](n)
	if Mapped() == mapped && runtime.GOOS != "linux" {
		t.Skip("this system gives no memory outside of the heap")
	}
	if len(array) != n || cap(array) != n {
		t.Fatalf("length %d, capacity %d, want %d", len(array), cap(array), n)
	}
	for i := range array {
		if array[i] != 0 {
			t.Fatalf("value %d is %d", i, array[i])
		}
		array[i] = uint64(i)
	}
	runtime.GC()
	for i := range array {
		if array[i] != uint64(i) {
			t.Fatalf("value %d became %d", i, array[i])
		}
	}
	if outside, inside := Mapped()-mapped, collected()-before; outside != size || inside > size/8 {
		t.Errorf("%d bytes outside of the heap and %d in it, of %d", outside, inside, size)
	}
	Free(array)
	if left := Mapped() - mapped; left != 0 {
		t.Errorf("%d bytes left", left)
	}
}

func TestSmallArraysAreOrdinary(t *testing.T) {
	mapped := Mapped()
	for _, n := range []int{0, 1, least/8 - 1} {
		array := Make[uint64](n)
		if len(array) != n || Mapped() != mapped {
			t.Errorf("an array of %d: length %d, %d bytes outside of the heap", n, len(array), Mapped()-mapped)
		}
		Free(array)
	}
}

// An array is ordinary also where the system refused memory.
func TestFreeLeavesAnOrdinaryArrayToTheCollector(t *testing.T) {
	mapped := Mapped()
	array := make([]uint64, least)
	Free(array)
	array[least-1] = 1
	if Mapped() != mapped {
		t.Errorf("counted as given back: %d bytes", mapped-Mapped())
	}
}

func collected() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
