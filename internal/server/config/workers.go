package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask/processor"
)

type workerSetting struct {
	name string
	set  func(w *Worker, value any) error
	get  func(w Worker) (value any, isSet bool)
}

var workerSettings = []workerSetting{
	{
		name: "url",
		set: func(w *Worker, value any) (err error) {
			w.URL, err = text(1)(value)
			return err
		},
		get: func(w Worker) (any, bool) { return maskURL(w.URL), w.URL != "" },
	},
	workerOf("method", choice("get", "post", "put", "patch", "delete"), func(w *Worker) *string { return &w.Method }),
	{
		name: "secrets",
		set: func(w *Worker, value any) (err error) {
			w.Secrets, err = list(value)
			return err
		},
		get: func(w Worker) (any, bool) { return masked, len(w.Secrets) > 0 },
	},
	workerOf("pass_rule", text(0), func(w *Worker) *string { return &w.PassRule }),
	workerOf("concurrency", integer(1, 100_000), func(w *Worker) *int { return &w.Concurrency }),
}

func workerOf[T comparable](name string, parse func(any) (T, error), field func(*Worker) *T) workerSetting {
	return workerSetting{
		name: name,
		set: func(w *Worker, value any) (err error) {
			*field(w), err = parse(value)
			return err
		},
		get: func(w Worker) (any, bool) {
			var unset T
			return *field(&w), *field(&w) != unset
		},
	}
}

// setWorker takes the path below workers: the tag and the name of its setting.
func (c *Config) setWorker(path []string, value any) error {
	if len(path) == 0 {
		if isEmpty(value) {
			return nil
		}
		return fmt.Errorf("want tags, and below each the address that is called; the number %v of tasks at once is called "+
			"concurrency", value)
	}
	if !processor.ValidTag(path[0]) {
		return processor.ErrInvalidTag
	}
	if len(path) < 2 {
		return errors.New("want the settings of a worker below the tag, such as url")
	}
	i := slices.IndexFunc(workerSettings, func(s workerSetting) bool { return s.name == path[1] })
	if i < 0 || len(path) > 2 {
		names := make([]string, len(workerSettings))
		for i, s := range workerSettings {
			names[i] = s.name
		}
		return unknown(names, path[1])
	}
	w := c.Workers[path[0]]
	if err := workerSettings[i].set(&w, value); err != nil {
		return err
	}
	if c.Workers == nil {
		c.Workers = make(map[string]Worker)
	}
	c.Workers[path[0]] = w
	return nil
}
