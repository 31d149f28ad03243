package proxy

import (
	"regexp"
	"strconv"
	"strings"
)

// Kind tells statements apart as far as faults do.
type Kind string

// The statements of which a reply or a request can be lost.
const (
	Insert Kind = "insert" // saves tasks
	Claim  Kind = "claim"
	Settle Kind = "settle" // any other transition: results, retries, rescues, cancels
	Commit Kind = "commit" // of somebody's transaction
	Other  Kind = ""
)

const table = "delay_task_message"

// kindOf goes by what the statement does, not by how it is written out, which differs between servers.
func kindOf(statement string) Kind {
	head := strings.ToUpper(statement[:min(len(statement), 32)])
	switch {
	case strings.HasPrefix(head, "COMMIT"):
		return Commit
	case strings.HasPrefix(head, "SELECT"), !strings.Contains(statement, table):
		return Other
	case strings.HasPrefix(head, "INSERT"):
		return Insert
	case !strings.HasPrefix(head, "UPDATE"), !strings.Contains(statement, "version = version + 1"):
		return Other // a purge, or a renewal, which changes no version
	case strings.Contains(statement, "status = 3, version = version + 1"):
		return Claim
	default:
		return Settle
	}
}

// ids of tasks have 63 bits, the highest of which hold the time: 18 or 19 digits.
var ids = regexp.MustCompile(`\b[1-9][0-9]{17,18}\b`)

// maxIDs is how many ids of a statement are noted: enough to find its rows again.
const maxIDs = 8

func idsOf(statement string) []int64 {
	var found []int64
	for _, text := range ids.FindAllString(statement, -1) {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil && len(found) < maxIDs {
			found = append(found, id)
		}
	}
	return found
}
