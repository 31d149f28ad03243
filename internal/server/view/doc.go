// Package view turns what the library answers into the JSON of package wire, for the HTTP API and for --json of the
// command.
package view
