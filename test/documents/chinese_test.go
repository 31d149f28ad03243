package documents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeSpan   = regexp.MustCompile("`[^`]+`")
	number     = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	image      = regexp.MustCompile(`(?:!\[[^]]*\]\(|<img[^>]* src=")([^)"]+)`)

	// comment is one at the end of a line of code, or on a line of its own: "// …", "# …" and "-- …".
	comment = regexp.MustCompile(`((?:^|\s)(?://|#|--) ).*`)

	// clumsy finds half-width punctuation in Chinese text, a missing space between Chinese and Latin words, and a line
	// that breaks between two Chinese characters, which viewers show as a space.
	clumsy = regexp.MustCompile(`\p{Han}[.,;:!?"()\w\x60]|[.,;:!?"()\w\x60]\p{Han}|\p{Han}\n\p{Han}`)
)

func TestChinesePagesSayWhatTheEnglishPagesSay(t *testing.T) {
	t.Parallel()
	for _, chinese := range documents(t, "*.zh-CN.md", "docs/zh-CN/*.md") {
		if filepath.Base(chinese.path) == "README.md" {
			continue // the glossary is for readers of Chinese alone
		}
		path := strings.NewReplacer(".zh-CN", "", "zh-CN/", "").Replace(chinese.path)
		english := document{path, read(t, path)}
		got, want := outline(chinese.text), outline(english.text)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%s has %q where %s has %q", chinese.path, got[i:min(i+1, len(got))],
					english.path, want[i:min(i+1, len(want))])
				break
			}
		}
		for page, other := range map[document]document{chinese: english, english: chinese} {
			to, err := filepath.Rel(filepath.Dir(page.path), other.path)
			if top, _, _ := strings.Cut(page.text, "\n\n#"); err != nil || !strings.Contains(top, "]("+to+")") {
				t.Errorf("%s does not link %s below its title", page.path, to)
			}
		}
	}
}

func TestChinesePagesLinkChinesePages(t *testing.T) {
	t.Parallel()
	for _, page := range documents(t, "*.zh-CN.md", "docs/zh-CN/*.md") {
		text := strings.Replace(page.text, "[English](", "", 1) // the link below the title
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			dir, name := filepath.Split(filepath.Join(filepath.Dir(page.path), found[1]))
			beside := strings.TrimSuffix(name, ".md") + ".zh-CN.md"
			for _, chinese := range []string{dir + "zh-CN/" + name, dir + beside} {
				if _, err := os.Stat(chinese); err == nil {
					t.Errorf("%s links %s: link %s", page.path, found[1], chinese)
				}
			}
		}
	}
}

// outline returns what a page and its translation have in common, in order: the levels of headings, images, lines of
// code without the words of their comments, the code and the numbers of each row of a table, and the code that the
// text of each section names.
func outline(page string) (all []string) {
	inCode, text := false, ""
	endSection := func() {
		var code []string
		for _, found := range codeSpan.FindAllString(text, -1) {
			code = append(code, strings.Join(strings.Fields(found), " "))
		}
		slices.Sort(code)
		all, text = append(all, fmt.Sprintf("text with %q", slices.Compact(code))), ""
	}
	for line := range strings.Lines(page) {
		fence := strings.HasPrefix(line, "```")
		inCode = inCode != fence
		switch {
		case fence || inCode:
			all = append(all, comment.ReplaceAllString(line, "$1"))
		case strings.HasPrefix(line, "#"):
			endSection()
			all = append(all, strings.Repeat("#", strings.Index(line, " ")))
		case strings.HasPrefix(line, "|"):
			code, rest := codeSpan.FindAllString(line, -1), codeSpan.ReplaceAllString(line, "")
			numbers := number.FindAllString(linkTarget.ReplaceAllString(rest, "]"), -1)
			all = append(all, fmt.Sprintf("row of %d with %q %q", strings.Count(rest, "|")-1, code, numbers))
		case image.MatchString(line):
			all = append(all, "image "+filepath.Base(image.FindStringSubmatch(line)[1]))
		default:
			text += line
		}
	}
	endSection()
	return all
}

func TestChineseReadsWell(t *testing.T) {
	t.Parallel()
	for _, page := range documents(t, "*.zh-CN.md", "docs/zh-CN/*.md") {
		text := codeBlock.ReplaceAllString(linkTarget.ReplaceAllString(page.text, "]"), "")
		for _, found := range clumsy.FindAllStringIndex(text, -1) {
			around := text[max(0, found[0]-20):min(found[1]+20, len(text))]
			t.Errorf("%s: %q", page.path, strings.ToValidUTF8(around, ""))
		}
		for line := range strings.Lines(page.text) {
			if n := len([]rune(strings.TrimSpace(line))); n > 120 && !strings.HasPrefix(line, "|") {
				t.Errorf("%s: a line of %d columns, want at most 120: %s", page.path, n, line)
			}
		}
	}
}
