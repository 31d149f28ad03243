package dashboard

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
)

//go:embed templates/*.html
var templateFiles embed.FS

// fewOfRow is how many of a list stand in a row of a table.
const fewOfRow = 6

// templates are the templates of each page, by its name.
type templates map[string]*template.Template

// newTemplates parses every page beside the layout and the parts that pages share, whose names begin with "_".
func newTemplates(f files) (templates, error) {
	funcs := template.FuncMap{
		"static": f.named, "params": params,
		"list": func(values ...any) []any { return values }, "sub": func(a, b int) int { return a - b },
		"few": func(n int) int { return min(n, fewOfRow) }, "left": func(n int) int { return max(n-fewOfRow, 0) },
	}
	shared, err := template.New("").Funcs(funcs).ParseFS(templateFiles, "templates/_*.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	all := templates{}
	for _, name := range names {
		base := strings.TrimSuffix(path.Base(name), ".html")
		if strings.HasPrefix(base, "_") {
			continue
		}
		page, err := shared.Clone()
		if err != nil {
			return nil, err
		}
		if all[base], err = page.ParseFS(templateFiles, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (t templates) part(w io.Writer, page, name string, with any) error {
	found := t[page]
	if found == nil {
		return fmt.Errorf("there is no template %s", page)
	}
	return found.ExecuteTemplate(w, name, with)
}

// params makes the parameters of a link of values or of a query. A template would escape what is no template.URL once
// more.
func params(of any) (template.URL, error) {
	values, ok := of.(url.Values)
	if !ok {
		var err error
		if values, err = url.ParseQuery(fmt.Sprint(of)); err != nil {
			return "", err
		}
	}
	return template.URL(values.Encode()), nil //nolint:gosec // Encode leaves nothing that ends the parameters
}
