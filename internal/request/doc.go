// Package request checks what a caller asks for, as far as that needs no database: the arguments and options of a save,
// a change, a pop and a schedule. It knows the zones that these are in.
package request
