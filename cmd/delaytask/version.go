package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) versionCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  delaytask version --json",
		RunE: func(*cobra.Command, []string) error {
			return a.say(struct {
				Version string `json:"version"`
				Commit  string `json:"commit,omitempty"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{scheduler.Version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH}, "%s\n", versionLine())
		},
	})
}

func versionLine() string {
	return fmt.Sprintf("delaytask %s (%s, %s/%s)", scheduler.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commit is the revision of the build, "" where it is unknown.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}
