// Package lateness judges how punctually tasks started: by the due times in the table and by the clock that processors
// read, not by anything that delaytask computed.
package lateness
