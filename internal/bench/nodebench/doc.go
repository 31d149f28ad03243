// Package nodebench holds what the benchmark of several processes on one database is made of: the process, and the
// fleet of them. Package bench says what is measured with them.
package nodebench
