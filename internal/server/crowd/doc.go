// Package crowd keeps callers from taking what others need of a service: its connections, and its turns.
package crowd
