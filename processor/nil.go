package processor

import "reflect"

// isNil also sees a nil pointer or function inside an interface, which would otherwise panic at its first use, far from
// the mistake.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return r.IsNil()
	default:
		return false
	}
}
