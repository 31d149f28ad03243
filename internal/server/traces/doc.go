// Package traces makes the spans of a server: of the requests that it takes, and of the calls that it makes. It lets
// the traces of its callers go on.
package traces
