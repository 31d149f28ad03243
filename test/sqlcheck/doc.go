// Package sqlcheck parses every statement that delaytask sends to a MySQL server with the parser of TiDB, and holds it against a
// list of what TiDB and Vitess refuse although they can read it. No server is asked: "parsed, not run".
//
// It is a module of its own, so that the parser is no dependency of delaytask: cd test/sqlcheck && go test ./...
package sqlcheck
