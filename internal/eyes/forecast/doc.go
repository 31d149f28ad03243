// Package forecast tells how many tasks are overdue and how many fall due soon, at a bounded cost whatever the table
// holds. It takes three kinds of numbers together:
//
//   - counts of rows, exact or up to a bound (count.go);
//   - the estimates of a server, where counts would cost too much (estimate.go);
//   - ticks of schedules that have no row yet (ticks.go).
package forecast
