package cluster

// Mix spreads an id over all 64 bits, so that Mix(id) mod total is even for every total. The plain id is not: its low bits are a
// sequence, and its high bits a time, that callers may use in steps.
//
// It is the finaliser of SplitMix64. All nodes must agree on it, so it never changes.
func Mix(id int64) uint64 {
	z := uint64(id) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
