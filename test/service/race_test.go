//go:build race

package service

// buildFlags make the program one that looks for races too.
var buildFlags = []string{"-race"}
