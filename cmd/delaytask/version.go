package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  delaytask version --json",
		Args:    wanted(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if !a.json {
				return a.printf("%s\n", versionLine())
			}
			return a.printJSON(struct {
				Version string `json:"version"`
				Commit  string `json:"commit,omitempty"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{delaytask.Version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func versionLine() string {
	return fmt.Sprintf("delaytask %s (%s, %s/%s)", delaytask.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commit is what the binary was built from, "" where the build did not say.
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
