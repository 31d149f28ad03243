package wire

import "github.com/delaytask/delaytask"

// latePolicies are the names of the policies, in JSON and on the command line.
var latePolicies = map[delaytask.LatePolicy]string{
	delaytask.LateRun:  "run",
	delaytask.LateSkip: "skip",
	delaytask.LateFail: "fail",
}

// LatePolicy names a policy.
func LatePolicy(p delaytask.LatePolicy) string {
	if name, known := latePolicies[p]; known {
		return name
	}
	return "unknown"
}

// ParseLatePolicy returns the policy of a name, and whether there is one.
func ParseLatePolicy(name string) (delaytask.LatePolicy, bool) {
	for policy, known := range latePolicies {
		if known == name {
			return policy, true
		}
	}
	return 0, false
}
