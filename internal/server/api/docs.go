package api

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsFile embed.FS

// openAPI serves the document that clients are generated from.
func (a *API) openAPI() http.HandlerFunc {
	document := sync.OnceValues(func() ([]byte, error) { return json.Marshal(a.spec.OpenAPI()) })
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := document()
		if err != nil {
			panic(err) // a programming error, which every test of the document finds
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(text) // the caller may be gone
	}
}

// docs serves the same document for people: one page without scripts.
func (a *API) docs() http.HandlerFunc {
	page := sync.OnceValues(func() ([]byte, error) {
		var b bytes.Buffer
		t, err := template.ParseFS(docsFile, "docs.html")
		if err == nil {
			err = t.Execute(&b, docsOf(a.spec.OpenAPI()))
		}
		return b.Bytes(), err
	})
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := page()
		if err != nil {
			panic(err) // a programming error, which every test of the page finds
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(text)
	}
}

type docsPage struct {
	Title, Version, Description string
	Groups                      []docsGroup
}

type docsGroup struct {
	Name, Text string
	Operations []docsOperation
}

type docsOperation struct {
	Method, Path, ID, Summary, Description string
	Parameters                             []*huma.Param
	Fields                                 []docsField // of the body
}

type docsField struct {
	Name, Type, Text string
	Required         bool
}

func docsOf(api *huma.OpenAPI) docsPage {
	page := docsPage{Title: api.Info.Title, Version: api.Info.Version, Description: api.Info.Description}
	for _, tag := range groups {
		group := docsGroup{Name: tag.Name, Text: tag.Description}
		for path, item := range api.Paths {
			for method, op := range operationsOf(item) {
				if slices.Contains(op.Tags, tag.Name) {
					group.Operations = append(group.Operations, docsOperation{
						Method: method, Path: path, ID: op.OperationID, Summary: op.Summary,
						Description: op.Description,
						Parameters:  op.Parameters, Fields: fieldsOf(api, op),
					})
				}
			}
		}
		slices.SortFunc(group.Operations, func(x, y docsOperation) int {
			return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Method, y.Method))
		})
		page.Groups = append(page.Groups, group)
	}
	return page
}

// operationsOf returns what a path offers, by its methods.
func operationsOf(item *huma.PathItem) map[string]*huma.Operation {
	all := map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPatch: item.Patch,
		http.MethodPut: item.Put, http.MethodDelete: item.Delete,
	}
	maps.DeleteFunc(all, func(_ string, op *huma.Operation) bool { return op == nil })
	return all
}

// typeText names the type of a parameter for a reader.
func typeText(s *huma.Schema) string {
	switch {
	case len(s.OneOf) > 0:
		return "duration"
	case s.Format == "date-time":
		return "time"
	default:
		return cmp.Or(s.Type, "any JSON")
	}
}

// fieldsOf returns the members of a request's body in JSON.
func fieldsOf(api *huma.OpenAPI, op *huma.Operation) (fields []docsField) {
	if op.RequestBody == nil || op.RequestBody.Content[mediaJSON] == nil {
		return nil
	}
	schema := op.RequestBody.Content[mediaJSON].Schema
	if schema.Items != nil {
		schema = schema.Items
	}
	if schema.Ref != "" {
		schema = api.Components.Schemas.SchemaFromRef(schema.Ref)
	}
	for name, field := range schema.Properties {
		fields = append(fields, docsField{
			Name: name, Type: typeText(field), Text: field.Description,
			Required: slices.Contains(schema.Required, name),
		})
	}
	slices.SortFunc(fields, func(x, y docsField) int { return cmp.Compare(x.Name, y.Name) })
	return fields
}
