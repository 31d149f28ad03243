//go:build !race

package service

var buildFlags []string
