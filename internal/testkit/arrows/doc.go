// Package arrows holds nothing but tests of how this repository is written: which packages may import which, how many
// files may need each other in a circle, that its tests wait for signals instead of sleeping, how long its lines are,
// and which words it uses. The race detector, with which they take fifteen times as long, leaves them out.
package arrows
