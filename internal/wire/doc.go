// Package wire is the JSON of the HTTP API, between the service, its Go client and other clients, and of the command
// with --json. FromTask makes the JSON of a task, and Task.To the task of its JSON; so do others. It knows no database
// and no server.
//
// Ids are strings, because they are longer than the numbers that JavaScript keeps exactly. Times are RFC 3339 in UTC to
// the millisecond. A duration in a request is a text such as "30m" or "7d", or a number of milliseconds; one in an
// answer is a number of milliseconds in a field that ends in _ms.
package wire
