// Package usage tells what this process has needed of the machine, and what the machine lacked. It knows how on Linux;
// elsewhere its functions return errors.ErrUnsupported.
package usage
