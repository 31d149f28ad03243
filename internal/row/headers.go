package row

import "encoding/json"

// DecodeHeaders reads the column of headers. It leaves out values that are not strings, because the column is open to
// anybody's SQL, and returns nil where none are left.
func DecodeHeaders(column []byte) map[string]string {
	var values map[string]any
	if len(column) == 0 || json.Unmarshal(column, &values) != nil {
		return nil
	}
	var headers map[string]string
	for name, value := range values {
		if text, ok := value.(string); ok {
			if headers == nil {
				headers = make(map[string]string, len(values))
			}
			headers[name] = text
		}
	}
	return headers
}
