// Package listing finds tasks page by page, however large the table is. A page goes through an index in its order: that
// of due times, by status and tag, or that of ids. What else a filter asks is matched against the rows on the way, so a
// page also ends when it has looked at many rows, and says so.
package listing
