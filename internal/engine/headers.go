package engine

import "encoding/json"

// encodeHeaders renders headers for the column; none become NULL.
func encodeHeaders(headers map[string]string) []byte {
	if len(headers) == 0 {
		return nil
	}
	encoded, err := json.Marshal(headers)
	if err != nil {
		return nil // a map of strings always marshals
	}
	return encoded
}
