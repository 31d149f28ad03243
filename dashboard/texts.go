package dashboard

import (
	"embed"
	"encoding/json"
	"fmt"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
)

// The texts of all pages, a file for each page, with every language beside the others.
//
//go:embed texts/*.json
var textFiles embed.FS

// said begins the keys of the texts of sentences, before their codes. Their English forms are not in the files: the
// library, the service and the command have them, too.
const said = "said."

// texts are the texts by key and language.
var texts = mustTexts()

func mustTexts() map[string]map[string]string {
	all := map[string]map[string]string{}
	entries, err := textFiles.ReadDir("texts")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, entry := range entries {
		b, err := textFiles.ReadFile("texts/" + entry.Name())
		if err != nil {
			panic(err)
		}
		var file map[string]map[string]string
		if err := json.Unmarshal(b, &file); err != nil {
			panic(fmt.Sprintf("texts/%s: %v", entry.Name(), err))
		}
		for key, text := range file {
			all[key] = text
		}
	}
	for code, form := range sentence.English {
		key := said + string(code)
		if all[key] == nil {
			all[key] = map[string]string{}
		}
		all[key]["en"] = form
	}
	return all
}
