// Package httpapi is the HTTP API of the service: /v1 with its OpenAPI document, the page that shows it, and the
// answers of health checks. Handlers translate; what a task is and may do is decided by package delaytask.
package api
