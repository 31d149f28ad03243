package storetest

import (
	"encoding/json"
	"reflect"
)

// equalJSON compares values, because a database may write JSON with other spaces than it was given.
func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
