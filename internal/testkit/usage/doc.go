// Package usage measures what this process uses of the machine, and what the machine lacked, on Linux. Elsewhere its
// functions return errors.ErrUnsupported.
package usage
