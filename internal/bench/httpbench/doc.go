// Package httpbench holds what the benchmark of the service is made of: the service as it is measured, and clients that
// load it. Package bench says what is measured with them.
package httpbench
