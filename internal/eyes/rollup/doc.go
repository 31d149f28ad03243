// Package rollup keeps lateness and results over time: what a process counts while tasks run, what it writes of that
// once a minute, and how the rows of all processes become one series.
package rollup
