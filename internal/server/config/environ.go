package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
)

const envPrefix = "DELAYTASK_"

var (
	notAlphanumeric = regexp.MustCompile(`[^A-Za-z0-9]`)

	// foreign variables begin like ours but are no settings: they belong to tests and clients of the service, the path
	// of the file itself, the first token, and what Kubernetes adds for every service whose name begins with delaytask.
	foreign = regexp.MustCompile(`^DELAYTASK_(TEST_.*|REQUIRE_.*|CONFIG|URL|TOKEN|BOOTSTRAP_TOKEN(_FILE)?|` +
		`(.*_)?SERVICE_(HOST|PORT)(_.*)?|(.*_)?PORT(_\d+_.*)?)$`)
)

// EnvName returns the environment variable of a key: log.level is DELAYTASK_LOG_LEVEL.
func EnvName(key string) string {
	return envPrefix + strings.ToUpper(notAlphanumeric.ReplaceAllString(key, "_"))
}

// readEnviron runs after the file is read: the name of a variable cannot contain a tag, so variables can set tags of
// the file alone.
func (c *Config) readEnviron(environ []string) error {
	var errs []error
	paths := c.variables()
	provider := env.Provider(pathSeparator, env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			path, known := paths[name]
			if value == "" || !known && foreign.MatchString(name) {
				return "", nil // an empty variable is how a deployment file says "not set"
			}
			if !known {
				errs = append(errs, unknownVariable(name))
			} else if len(path) == 0 {
				errs = append(errs, fmt.Errorf("%s: more than one tag of the file can be meant; set it in the file",
					name))
			}
			return strings.Join(path, pathSeparator), value
		},
	})
	k := koanf.New(pathSeparator)
	if err := k.Load(provider, nil); err != nil {
		return fmt.Errorf("read settings from the environment: %w", err)
	}
	errs = append(errs, c.apply(k, func(path []string) string { return EnvName(strings.Join(path, ".")) }, ""))
	for joined, value := range k.All() {
		if in := c.inFile[joined]; in != nil && fmt.Sprint(in) != fmt.Sprint(value) {
			key := strings.ReplaceAll(joined, pathSeparator, ".")
			c.Overridden = append(c.Overridden, key+" by "+EnvName(key))
		}
	}
	slices.Sort(c.Overridden)
	return errors.Join(errs...)
}

// variables returns the path of every variable that can be set, and an empty path where two tags share a variable's
// name.
func (c *Config) variables() map[string][]string {
	paths := make(map[string][]string)
	for _, key := range Keys() {
		paths[EnvName(key)] = strings.Split(key, ".")
	}
	add := func(path ...string) {
		name := EnvName(strings.Join(path, "."))
		if _, taken := paths[name]; taken {
			path = nil
		}
		paths[name] = path
	}
	for _, tag := range slices.Sorted(maps.Keys(c.Tags)) {
		for _, s := range tagSettings {
			add("tags", tag, s.name)
		}
	}
	for tag := range c.Receivers {
		for _, s := range receiverSettings {
			add("receivers", tag, s.name)
		}
	}
	return paths
}

func unknownVariable(name string) error {
	if strings.HasPrefix(name, EnvName("tags.")) || strings.HasPrefix(name, EnvName("receivers.")) {
		return fmt.Errorf("%s: name the tag in the file first: a variable's name cannot tell order.close from "+
			"ORDER_CLOSE", name)
	}
	names := make([]string, len(settings))
	for i, key := range Keys() {
		names[i] = EnvName(key)
	}
	return fmt.Errorf("%s: %w", name, unknown(names, name))
}
