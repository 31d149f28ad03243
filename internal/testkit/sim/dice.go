package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice decides: what it says depends on the seed, the question and the numbers, and on nothing else.
type dice uint64

// die is the answer to one question, as long as one goroutine asks.
type die struct{ *rand.Rand }

func (d dice) roll(question string, numbers ...int) die {
	h := fnv.New64a()
	_, _ = h.Write([]byte(question))
	a, b := uint64(d), h.Sum64()
	for _, n := range numbers {
		a = mix(a ^ mix(b+uint64(n)))
	}
	return die{rand.New(rand.NewPCG(mix(a), b))}
}

// mix is SplitMix64's finaliser.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chance is true with the probability p.
func (d die) chance(p float64) bool { return d.Float64() < p }

// between returns a duration from the range.
func (d die) between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.Int64N(int64(to-from)+1))
}

// about returns a duration whose mean is given, as the time between events that do not know of each other.
func (d die) about(mean time.Duration) time.Duration {
	return time.Duration(min(d.ExpFloat64(), 5) * float64(mean))
}

// oneOf picks one.
func oneOf[T any](d die, all ...T) T { return all[d.IntN(len(all))] }
