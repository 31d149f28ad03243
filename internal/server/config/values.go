package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"
)

// pathSeparator stands between the parts of a key inside koanf. Tags are keys too, and may hold a dot.
const pathSeparator = "\x00"

// apply sets every value of one source in the order of the keys. name is what the source calls a key.
func (c *Config) apply(k *koanf.Koanf, name func(path []string) string, origin string) error {
	values := k.All()
	var errs []error
	for _, joined := range slices.Sorted(maps.Keys(values)) {
		path := strings.Split(joined, pathSeparator)
		if err := c.set(path, values[joined]); err != nil {
			errs = append(errs, fmt.Errorf("%s%s: %w", origin, name(path), err))
		}
		if joined == "dsn" && values[joined] != nil {
			c.DSNFrom = origin + name(path)
		}
	}
	return errors.Join(errs...)
}

func (c *Config) set(path []string, value any) error {
	switch path[0] {
	case "tags":
		return c.setTag(path[1:], value)
	case "receivers":
		return c.setReceiver(path[1:], value)
	case "schedules":
		return c.setSchedule(path[1:], value)
	}
	s, known := find(settings, strings.Join(path, "."))
	known = known && len(path) == len(strings.Split(s.name, ".")) // not log.level in one piece
	if isEmpty(value) && (known || isSection(path)) {
		return nil // a key without a value says nothing
	}
	if !known {
		return unknownKey(path)
	}
	return s.set(c, value)
}
