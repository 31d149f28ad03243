package record

import "fmt"

// UpperBound is the rule of three: of n things of which none has failed, at most 3/n fail, with 95 % certainty. It is empty where one
// has.
func UpperBound(failed, n int, what string) string {
	if failed > 0 || n == 0 {
		return ""
	}
	return fmt.Sprintf("%.1g of a %s", 3/float64(n), what)
}
