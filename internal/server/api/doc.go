// Package api is the HTTP API of the service: /v1 with its OpenAPI document, the page that shows it, and the health
// checks. It guards the dashboard, which is another package's, like its own routes. Handlers translate; package
// delaytask decides what a task is and may do.
package api
