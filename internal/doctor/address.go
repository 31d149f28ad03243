package doctor

import (
	"context"
	"strings"
)

// checkAddress looks whether servers that are not one database answer at the address. A balancer that sends this
// machine to the same server each time hides the others.
func checkAddress(ctx context.Context, s *Subject) ([]Finding, error) {
	servers, err := s.inspect.Databases(ctx)
	if err != nil || len(servers) < 2 {
		return nil, err
	}
	return []Finding{{"two_databases", Critical,
		"two databases answer at one address: " + strings.Join(servers, ", "),
		"tasks that are saved in one do not run from the other",
		"let the address lead to one server or cluster, and move the tasks that were saved in the other"}}, nil
}
