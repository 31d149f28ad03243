package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
)

var tagSettings = []part[Tag]{
	partOf("concurrency", integer(1, 100_000), func(t *Tag) *int { return &t.Concurrency }),
	{
		name: "timeout",
		set: func(t *Tag, value any) (err error) {
			t.Timeout, err = duration(0, year)(value)
			t.NoTimeout = t.Timeout == 0
			return err
		},
		get: func(t Tag) (any, bool) { return t.Timeout, t.Timeout != 0 || t.NoTimeout },
	},
	partOf("ttr", duration(time.Second, day), func(t *Tag) *time.Duration { return &t.TTR }),
	partOf("max_attempts", integer(1, 1_000_000), func(t *Tag) *int { return &t.MaxAttempts }),
}

var receiverSettings = []part[Receiver]{
	{
		name: "url",
		set:  partOf("", text(1), func(w *Receiver) *string { return &w.URL }).set,
		get:  func(w Receiver) (any, bool) { return maskURL(w.URL), w.URL != "" },
	},
	partOf("method", choice("get", "post", "put", "patch", "delete"), func(w *Receiver) *string { return &w.Method }),
	{
		name: "secrets",
		set: func(w *Receiver, value any) (err error) {
			w.Secrets, err = list(value)
			return err
		},
		get: func(w Receiver) (any, bool) { return masked, len(w.Secrets) > 0 },
	},
	partOf("pass_rule", text(0), func(w *Receiver) *string { return &w.PassRule }),
	partOf("concurrency", integer(1, 100_000), func(w *Receiver) *int { return &w.Concurrency }),
}

// setTag takes the path below tags: the tag and the name of its setting.
func (c *Config) setTag(path []string, value any) error {
	switch {
	case len(path) > 0 && !delaytask.ValidTag(path[0]):
		return delaytask.ErrInvalidTag
	case len(path) < 2 && isEmpty(value):
		return nil
	case len(path) < 2:
		return errors.New("want the settings of tags: tags, below it the tag, below that its settings")
	}
	return setPart(&c.Tags, tagSettings, path[0], path[1:], value, isEmpty(value))
}

// setReceiver takes the path below receivers: the tag and the name of its setting.
func (c *Config) setReceiver(path []string, value any) error {
	switch {
	case len(path) == 0 && isEmpty(value):
		return nil
	case len(path) == 0:
		return fmt.Errorf("want tags, and below each the address that is called; the number %v of tasks at once is "+
			"called concurrency", value)
	case !delaytask.ValidTag(path[0]):
		return delaytask.ErrInvalidTag
	case len(path) < 2:
		return errors.New("want the settings of a receiver below the tag, such as url")
	}
	return setPart(&c.Receivers, receiverSettings, path[0], path[1:], value, false)
}
