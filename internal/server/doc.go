// Package server runs `delaytask serve`: a scheduler, the HTTP API before it, the calls to receivers behind it, and an
// orderly end of all of them.
package server
