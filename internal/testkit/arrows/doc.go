// Package arrows holds nothing but tests of how this module is written: in which directions its packages may import
// each other, and that its tests wait for signals instead of sleeping.
package arrows
