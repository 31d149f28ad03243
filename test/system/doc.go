// Package system holds the tests of the whole: real processes under faults (chaos) and beside the locks of other
// programs (neighbours), a service that is attacked (attacks), the dashboard in a browser, the manifests of deploy/,
// and the statements as other servers parse them. They are a module of their own, so that a program that uses delaytask
// has neither a browser's driver, nor Kubernetes, nor a parser in its go.sum.
package system
