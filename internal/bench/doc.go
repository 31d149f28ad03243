// Package bench measures a database, and delaytask on it, side by side: what `delaytask bench` does.
//
// [Run] takes the measurements of the registry (registry.go) in turns, each on a fresh database of its own
// (scratch.go), and reports medians (figures.go, report.go). A measurement is a function that adds figures; what
// follows from medians, such as a ratio, is derived at the end. The raw measurements (raw*.go) know nothing of
// delaytask but its table, and are as fast as we can make them. What needs a fresh process, or one that is killed, has
// a role in a child (child.go).
package bench
