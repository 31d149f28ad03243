// Package service is delaytask as a server: a scheduler, the HTTP API before it, the calls to addresses behind it, and
// an orderly end of all of them.
package server
