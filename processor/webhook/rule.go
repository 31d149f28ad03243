package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const maxPath = 200 // bytes of a path that an error shows

// Rule is a pass rule: what an answer must contain to mean done. Every field of the rule must be in the answer, a JSON
// object, with an equal value. Numbers are equal by value (1 and 1.0), strings to the letter; an object needs each of
// its fields in the answer's object, which may hold more; an array needs the same length, and each of its elements in
// its place. The zero value is satisfied by any answer.
type Rule struct{ fields map[string]any }

// ParseRule reads a rule, a JSON object. null and {} are the zero Rule. It returns [ErrInvalidRequest].
func ParseRule(text []byte) (Rule, error) {
	value, err := decode(text)
	if err != nil {
		return Rule{}, fmt.Errorf("%w: the pass rule is not JSON", ErrInvalidRequest)
	}
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		return Rule{}, fmt.Errorf("%w: the pass rule must be a JSON object", ErrInvalidRequest)
	}
	return Rule{fields}, nil
}

// mismatch says what the answer lacks, or "". It names fields of the rule and nothing of the answer.
func (r Rule) mismatch(answer []byte) string {
	if len(r.fields) == 0 {
		return ""
	}
	if len(answer) > maxAnswer {
		return fmt.Sprintf("it is longer than %d bytes", maxAnswer)
	}
	value, err := decode(answer)
	if err != nil {
		return "it is not JSON"
	}
	path, ok := matches(r.fields, value)
	switch {
	case ok:
		return ""
	case len(path) == 0:
		return "it is not a JSON object"
	}
	slices.Reverse(path)
	where := strings.TrimPrefix(strings.Join(path, ""), ".")
	return "it differs at " + strconv.Quote(strings.ToValidUTF8(where[:min(len(where), maxPath)], ""))
}

// matches returns the path where value does not satisfy want, reversed. It is built on the way back from a difference,
// so equal values cost no path.
func matches(want, value any) (path []string, ok bool) {
	switch want := want.(type) {
	case map[string]any:
		return matchesObject(want, value)
	case []any:
		elements, ok := value.([]any)
		if !ok || len(elements) != len(want) {
			return nil, false
		}
		for i := range want {
			if path, ok := matches(want[i], elements[i]); !ok {
				return append(path, "["+strconv.Itoa(i)+"]"), false
			}
		}
		return nil, true
	case json.Number:
		number, ok := value.(json.Number)
		return nil, ok && sameNumber(string(want), string(number))
	default: // string, bool, nil
		return nil, want == value
	}
}

func matchesObject(want map[string]any, value any) (path []string, ok bool) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(want)) { // in order, so that the same answer gives the same error
		field, ok := fields[name]
		if ok {
			path, ok = matches(want[name], field)
		}
		if !ok {
			return append(path, "."+name), false
		}
	}
	return nil, true
}

// decode keeps numbers as they are written: a float64 would make large ids equal that are not.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if len(bytes.TrimLeft(text[decoder.InputOffset():], " \t\r\n")) > 0 {
		return nil, fmt.Errorf("there is more after the value")
	}
	return value, nil
}

// sameNumber compares two JSON numbers by value without computing them: 1e999999999 is short to write and long to hold.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, ok := parseDecimal(a)
	y, valid := parseDecimal(b)
	return ok && valid && x == y
}

// decimal is 0.digits × 10^exponent, digits without zeros at either end; zero has no digits, no sign and the exponent
// 0.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

func parseDecimal(text string) (decimal, bool) {
	unsigned, negative := strings.CutPrefix(text, "-")
	mantissa, power, scientific := strings.Cut(strings.ToLower(unsigned), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d := decimal{negative: negative, digits: strings.TrimRight(digits, "0")}
	if d.digits == "" {
		return decimal{}, true
	}
	if scientific {
		n, err := strconv.ParseInt(power, 10, 32) // what is larger equals only its own spelling
		if err != nil {
			return decimal{}, false
		}
		d.exponent = n
	}
	d.exponent += int64(len(whole)) - int64(len(whole+fraction)-len(digits))
	return d, true
}
