package config

import (
	"fmt"
	"strings"

	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// keyAnnotation marks the flags that are settings. A command's own flags may have the same names: --ttr of one task is
// not the default of all.
const keyAnnotation = "delaytask-config-key"

// FlagName returns the flag of a key: log.level is --log-level.
func FlagName(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }

// AddFlags adds a flag for each of the keys, or for all of them when none is named; secrets have none. It panics when a
// key is unknown, as pflag does when a flag is defined twice.
func AddFlags(flags *pflag.FlagSet, keys ...string) {
	if len(keys) == 0 {
		keys = Keys()
	}
	for _, key := range keys {
		s, ok := find(settings, key)
		if !ok {
			panic(fmt.Sprintf("config: no setting is called %q", key))
		}
		if key != secretKey {
			addFlag(flags, s)
		}
	}
}

func addFlag(flags *pflag.FlagSet, s part[Config]) {
	byDefault, _ := s.get(Default())
	name := FlagName(s.name)
	flags.String(name, flagText(byDefault), fmt.Sprintf("setting %s, also %s", s.name, EnvName(s.name)))
	flag := flags.Lookup(name)
	flag.Annotations = map[string][]string{keyAnnotation: {s.name}}
	if _, isBool := byDefault.(bool); isBool {
		flag.NoOptDefVal = "true"
	}
}

// flagText is a default as a flag shows it.
func flagText(value any) string {
	if list, ok := value.([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(plain(value))
}

func (c *Config) readFlags(flags *pflag.FlagSet) error {
	if flags == nil {
		return nil
	}
	setting := func(f *pflag.Flag) (string, any) {
		key := f.Annotations[keyAnnotation]
		if len(key) == 0 {
			return "", nil
		}
		return strings.ReplaceAll(key[0], ".", pathSeparator), f.Value.String()
	}
	k := koanf.New(pathSeparator)
	if err := k.Load(posflag.ProviderWithFlag(flags, pathSeparator, nil, setting), nil); err != nil {
		return fmt.Errorf("read settings from the flags: %w", err)
	}
	return c.apply(k, func(path []string) string { return "--" + FlagName(strings.Join(path, ".")) }, "")
}
