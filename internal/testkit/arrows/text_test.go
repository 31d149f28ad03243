//go:build !race

package arrows

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const longestLine = 120 // columns

func TestLinesEndByColumn120(t *testing.T) {
	for file := range sources(t) {
		n := 0
		for line := range strings.Lines(content(t, file)) {
			n++
			if width := columns(line); width > longestLine {
				t.Errorf("%s:%d has %d columns, want at most %d", file, n, width, longestLine)
			}
		}
	}
}

// columns is how wide an editor with a tab stop every four columns shows the line.
func columns(line string) (n int) {
	for _, r := range strings.TrimRight(line, "\r\n") {
		n++
		if r == '\t' {
			n = (n + 3) / 4 * 4
		}
	}
	return n
}

// oldWords are words of this project that other engineers did not know, and what to use instead. None of them may be
// part of an identifier or a word of a comment. Words that have another meaning in Go or in English are not listed.
var oldWords = map[string]string{
	"acquit":    "exonerate",
	"anybody":   "the node, the process or the caller",
	"companies": "peers",
	"company":   "peers",
	"deed":      "operation",
	"diary":     "journal",
	"dice":      "faults",
	"era":       "clock epoch",
	"everybody": "all nodes, processes or callers",
	"forsake":   "abandon",
	"impatient": "overdue waiter",
	"invention": "phantom task",
	"journey":   "call transit",
	"knower":    "witness",
	"lest":      "so that not",
	"lone":      "solo",
	"mortal":    "disposable server",
	"nobody":    "no node, process or caller",
	"obedient":  "supervised server",
	"outcast":   "unclaimable row",
	"outcasts":  "unclaimable rows",
	"outsider":  "external client",
	"patiently": "slow retry",
	"popline":   "pop queue",
	"portion":   "batch size",
	"quarrel":   "lock conflict",
	"rhythm":    "interval",
	"rivals":    "contention",
	"scar":      "residue",
	"seam":      "bridge",
	"sieve":     "share filter",
	"situation": "cluster state",
	"somebody":  "another node, process or caller",
	"strained":  "saturated",
	"stray":     "orphaned claim",
	"strays":    "orphaned claims",
	"surplus":   "prefetch",
	"suspect":   "on probation",
	"suspects":  "on probation",
	"tagline":   "tag queue",
	"teller":    "narrator",
	"thereof":   "of it",
	"twin":      "duplicate within the batch",
	"undealt":   "unassigned",
	"weather":   "faults",
	"whoever":   "the node, process or caller that",
	"whomever":  "the node, process or caller that",
	"zombie":    "abandoned processor",
}

func TestOldWordsDoNotComeBack(t *testing.T) {
	for file := range sources(t) {
		for line, words := range wordsOf(content(t, file)) {
			for _, word := range words {
				if use, old := oldWords[word]; old {
					t.Errorf("%s:%d says %q: use %q", file, line, word, use)
				}
			}
		}
	}
}

func TestWordsAreFoundInIdentifiersAndComments(t *testing.T) {
	got := wordsOf("package p // a Sieve\n\nvar aSieve, HTTPSieve2 = \"a lone string\", 2 /* the lone\n one */\n")
	want := map[int][]string{
		1: {"p", "a", "sieve"},
		3: {"a", "sieve", "http", "sieve", "the", "lone", "one"},
	}
	for line := range 5 {
		if !slices.Equal(got[line], want[line]) {
			t.Errorf("line %d has the words %q, want %q", line, got[line], want[line])
		}
	}
	if n := columns("\tä\tb\n"); n != 9 {
		t.Errorf("got %d columns, want 9", n)
	}
}

// pronouns stand for a thing that the reader has to look for, in one line or across two, and between two Go strings.
var pronouns = regexp.MustCompile(`(?i)\b(those|that)` + between + `of\b|\b(is|are)` + between + `none\b`)

const between = `[\s"+/*#>-]+`

// oldTexts are old words, some of them parts of names, that no text may have, whatever its language.
var oldTexts = regexp.MustCompile(
	`(?i)outcast|\bsuspect|\bacquit|popline|\btagline|zombie|turnAway|dealAnew|\blest\b|whomever|thereof`)

// textTypes end the names of files that people read: code, pages, templates, settings and statements.
var textTypes = []string{".go", ".md", ".html", ".yaml", ".yml", ".sql"}

func TestTextsNameTheThingAgain(t *testing.T) {
	const root = "../../.."
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "node_modules", "tmp"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains(textTypes, path.Ext(entry.Name())):
			return nil
		}
		file, err := filepath.Rel(root, name)
		if file = filepath.ToSlash(file); err != nil || file == "internal/testkit/arrows/text_test.go" { // lists them
			return err
		}
		text := content(t, file)
		for use, banned := range map[string]*regexp.Regexp{
			"name the thing again, or say invalid, missing, not set": pronouns,
			"oldWords has another word":                              oldTexts,
		} {
			for _, at := range banned.FindAllStringIndex(text, -1) {
				line := 1 + strings.Count(text[:at[0]], "\n")
				t.Errorf("%s:%d says %q: %s", file, line, text[at[0]:at[1]], use)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPronounsAreFoundAcrossLines(t *testing.T) {
	for text, want := range map[string]bool{
		"Limits are those of the settings.": true, "\t\"runs are those \"+\n\t\t\t\"of a schedule\"": true,
		"// there is\n// none": true, "That\n> of": true, "those files": false, "none is left": false,
	} {
		if got := pronouns.MatchString(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}

// wordsOf returns the words of comments and the parts of identifiers by the line where these begin, in lower case.
func wordsOf(source string) map[int][]string {
	words := map[int][]string{}
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), nil, scanner.ScanComments)
	for pos, kind, text := s.Scan(); kind != token.EOF; pos, kind, text = s.Scan() {
		switch kind {
		case token.COMMENT, token.IDENT:
			line := file.Line(pos)
			for _, part := range word.FindAllString(initialism.ReplaceAllString(text, "$1 $2"), -1) {
				words[line] = append(words[line], strings.ToLower(part))
			}
		}
	}
	return words
}

var (
	initialism = regexp.MustCompile(`([A-Z]+)([A-Z][a-z])`) // and the word behind it
	word       = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
)

func content(t *testing.T, file string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}
