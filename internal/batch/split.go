package batch

// Split parts a batch in two, in order.
func Split[T any](all []T, first func(T) bool) (yes, no []T) {
	for _, v := range all {
		if first(v) {
			yes = append(yes, v)
		} else {
			no = append(no, v)
		}
	}
	return yes, no
}
