// Package api is the HTTP API of the service: /v1 with its OpenAPI document, the page that shows it, and the health
// checks. Handlers translate; package delaytask decides what a task is and may do.
package api
