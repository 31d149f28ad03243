package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/config"
)

// benchPart is a command that measures what bench leaves out: the same run, of the measurements whose names begin with the part's.
func (a *app) benchPart(part string, o *bench.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:  part,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range o.Only {
				if name != part && !strings.HasPrefix(name, part+".") {
					return misusedf("--only: bench %s does not measure %q; it measures %s", part, name, benchPartList(part))
				}
			}
			c, err := a.settings(cmd)
			if err != nil {
				return err
			}
			o.DSN = c.DSN
			o.Logger = a.logger(config.Log{Level: "error"})
			if len(o.Only) == 0 {
				o.Only = []string{part}
			}
			return a.bench(cmd, *o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Quick, "quick", false, "each measurement shorter")
	flags.StringSliceVar(&o.Only, "only", nil, "measure these alone, as "+strings.Join(benchPartNames(part)[:2], ","))
	flags.Float64Var(&o.Scale, "scale", 1, "make all workloads smaller, which makes the figures meaningless")
	_ = flags.MarkHidden("scale") // the flag was added in the line above
	values(cmd, "only", benchPartNames(part)...)
	a.jsonFlag(cmd)
	return cmd
}

func benchPartNames(part string) (names []string) {
	for _, name := range bench.Names() {
		if strings.HasPrefix(name, part+".") {
			names = append(names, name)
		}
	}
	return names
}

func benchPartList(part string) string { return strings.Join(benchPartNames(part), ", ") }
