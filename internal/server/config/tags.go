package config

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// A tag's settings are optional, so they have a table of their own: a setting that is left out is neither checked nor
// printed.
type tagSetting struct {
	name string
	set  func(t *Tag, value any) error
	get  func(t Tag) (value any, isSet bool)
}

var tagSettings = []tagSetting{
	tagOf("concurrency", integer(1, 100_000), func(t *Tag) *int { return &t.Concurrency }),
	{
		name: "timeout",
		set: func(t *Tag, value any) (err error) {
			t.Timeout, err = duration(0, year)(value)
			t.NoTimeout = t.Timeout == 0
			return err
		},
		get: func(t Tag) (any, bool) { return t.Timeout, t.Timeout != 0 || t.NoTimeout },
	},
	tagOf("ttr", duration(time.Second, day), func(t *Tag) *time.Duration { return &t.TTR }),
	tagOf("max_attempts", integer(1, 1_000_000), func(t *Tag) *int { return &t.MaxAttempts }),
}

func tagOf[T comparable](name string, parse func(any) (T, error), field func(*Tag) *T) tagSetting {
	return tagSetting{
		name: name,
		set: func(t *Tag, value any) (err error) {
			*field(t), err = parse(value)
			return err
		},
		get: func(t Tag) (any, bool) {
			var unset T
			return *field(&t), *field(&t) != unset
		},
	}
}

// setTag takes the path below tags: the tag and the name of its setting.
func (c *Config) setTag(path []string, value any) error {
	if len(path) > 0 && !processor.ValidTag(path[0]) {
		return processor.ErrInvalidTag
	}
	if len(path) < 2 {
		if isEmpty(value) {
			return nil
		}
		return errors.New("want the settings of tags: tags, below it the tag, below that its settings")
	}
	names := tagSettingNames()
	i := slices.Index(names, path[1])
	if i < 0 || len(path) > 2 {
		return unknown(names, path[1])
	}
	if isEmpty(value) {
		return nil
	}
	t := c.Tags[path[0]]
	if err := tagSettings[i].set(&t, value); err != nil {
		return err
	}
	if c.Tags == nil {
		c.Tags = make(map[string]Tag)
	}
	c.Tags[path[0]] = t
	return nil
}

func (c *Config) tagNames() []string { return slices.Sorted(maps.Keys(c.Tags)) }

func tagSettingNames() []string {
	names := make([]string, len(tagSettings))
	for i, s := range tagSettings {
		names[i] = s.name
	}
	return names
}
