// Package child runs this very program once more, in a role: for whatever needs a process of its own to be measured, or
// killed.
//
// The parent calls [Start] with an order; the child, told by its arguments that it is one, calls [Serve].
package child
