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

// decodeHeaders reads the column. A plain INSERT may hold values that are not strings; they are left out.
func decodeHeaders(column []byte) map[string]string {
	if len(column) == 0 {
		return nil
	}
	var raw map[string]any
	if json.Unmarshal(column, &raw) != nil {
		return nil
	}
	headers := make(map[string]string, len(raw))
	for name, value := range raw {
		if s, ok := value.(string); ok {
			headers[name] = s
		}
	}
	return headers
}
