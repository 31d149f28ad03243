// Pictures records a command on a terminal and draws an animated SVG of it:
//
//	go -C test/pictures run . -o demo.svg delaytask demo
//
// With -page it takes pictures of a page that the command serves, dashboard-light.png and dashboard-dark.png:
//
//	go -C test/pictures run . -page 1280x800 -o dashboard delaytask demo --ui
//
// The command is found by PATH. It writes the address of the page on a line of its own, and ends by an interrupt. The
// SVG needs no script and no font of its own.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	file := flag.String("o", "", "the SVG that is written, or the beginning of the names of pages")
	page := flag.String("page", "", "the size of a page, as `WIDTHxHEIGHT`, that the command serves")
	shown := flag.Int("rows", 30, "how many rows of the terminal the picture shows; the rest scrolls")
	flag.Parse()
	if *file == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	err := error(nil)
	if *page != "" {
		err = photograph(*file, *page, flag.Args())
	} else {
		err = run(*file, *shown, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string, shown int, args []string) error {
	lines, took, err := record(args)
	if err != nil {
		return fmt.Errorf("record %s: %w", strings.Join(args, " "), err)
	}
	p := picture{command: strings.Join(args, " "), lines: lines, took: took, shown: shown}
	return os.WriteFile(file, []byte(p.svg()), 0o644)
}
