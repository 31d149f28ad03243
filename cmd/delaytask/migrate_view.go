package main

import (
	"github.com/delaytask/delaytask/migrations"
)

type migrationView struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
}

func migrationViews(states []migrations.State) []migrationView {
	views := make([]migrationView, len(states))
	for i, s := range states {
		views[i] = migrationView(s)
	}
	return views
}

func newestApplied(states []migrations.State) (newest migrations.State) {
	for _, s := range states {
		if s.Applied {
			newest = s
		}
	}
	return newest
}

// printMigrated names the migrations that were changed, or says that none was.
func (a *app) printMigrated(before []migrations.State, changed func(migrations.State) bool, past, none string) error {
	views := []migrationView{} // [] in JSON when there is none
	for _, s := range before {
		if changed(s) {
			s.Applied = !s.Applied
			views = append(views, migrationView(s))
		}
	}
	if a.json {
		return a.printJSON(list[migrationView]{Items: views})
	}
	if len(views) == 0 {
		return a.printf("%s\n", none)
	}
	for _, v := range views {
		if err := a.printf("%s %s\n", past, v.Name); err != nil {
			return err
		}
	}
	return nil
}
