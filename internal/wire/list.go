package wire

// each converts a list. An empty one is [] in JSON.
func each[From, To any](list []From, convert func(*From) To) []To {
	converted := make([]To, len(list))
	for i := range list {
		converted[i] = convert(&list[i])
	}
	return converted
}
