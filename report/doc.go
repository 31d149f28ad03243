// Package report has what operators read: what needs attention now, how every tag stands, lateness and results over
// time, what is to come, which tasks fail and why, the nodes, and what people have changed. Its values come from the
// methods of a scheduler, such as Overview and Explain.
package report
