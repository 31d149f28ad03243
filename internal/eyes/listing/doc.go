// Package listing finds tasks page by page, however large the table is. A page goes through an index in its order: by
// status, tag and due time, or by id. What else a filter asks is matched against the rows on the way, so a page also
// ends when it has looked at many rows, and says so.
package listing
