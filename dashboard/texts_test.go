package dashboard

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every text that a page or the code names exists in every language, and none is left over.
func TestNoTextIsMissing(t *testing.T) {
	t.Parallel()
	key := regexp.MustCompile(`"((?:[a-z_0-9]+\.)+[a-z_0-9.-]*)"`)
	prefix := regexp.MustCompile(`(?:print |= )"([a-z_0-9.]+\.)"`)
	used, prefixes := map[string]bool{}, map[string]bool{}
	read := func(name string, b []byte) {
		for _, m := range key.FindAllSubmatch(b, -1) {
			used[string(m[1])] = true
		}
		for _, m := range prefix.FindAllSubmatch(b, -1) {
			prefixes[string(m[1])] = true
		}
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		code := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		source := code || strings.HasSuffix(path, ".html")
		if err != nil || !source {
			return err
		}
		b, err := os.ReadFile(path)
		read(path, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range used {
		family, _, _ := strings.Cut(name, ".")
		if _, known := families()[family]; known && texts[name] == nil && !strings.HasSuffix(name, ".") {
			t.Errorf("the text %s is missing", name)
		}
	}
	for name, text := range texts {
		for lang := range languages {
			if text[lang] == "" {
				t.Errorf("the text %s is missing in %s", name, lang)
			}
		}
		built := false
		for p := range prefixes {
			built = built || strings.HasPrefix(name, p)
		}
		if !used[name] && !built {
			t.Errorf("no page uses the text %s", name)
		}
	}
}

// families are the first parts of the keys.
func families() map[string]bool {
	all := map[string]bool{}
	for name := range texts {
		family, _, _ := strings.Cut(name, ".")
		all[family] = true
	}
	return all
}
