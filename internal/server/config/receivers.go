package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask/processor"
)

type receiverSetting struct {
	name string
	set  func(w *Receiver, value any) error
	get  func(w Receiver) (value any, isSet bool)
}

var receiverSettings = []receiverSetting{
	{
		name: "url",
		set: func(w *Receiver, value any) (err error) {
			w.URL, err = text(1)(value)
			return err
		},
		get: func(w Receiver) (any, bool) { return maskURL(w.URL), w.URL != "" },
	},
	receiverOf("method", choice("get", "post", "put", "patch", "delete"),
		func(w *Receiver) *string { return &w.Method }),
	{
		name: "secrets",
		set: func(w *Receiver, value any) (err error) {
			w.Secrets, err = list(value)
			return err
		},
		get: func(w Receiver) (any, bool) { return masked, len(w.Secrets) > 0 },
	},
	receiverOf("pass_rule", text(0), func(w *Receiver) *string { return &w.PassRule }),
	receiverOf("concurrency", integer(1, 100_000), func(w *Receiver) *int { return &w.Concurrency }),
}

func receiverOf[T comparable](name string, parse func(any) (T, error), field func(*Receiver) *T) receiverSetting {
	return receiverSetting{
		name: name,
		set: func(w *Receiver, value any) (err error) {
			*field(w), err = parse(value)
			return err
		},
		get: func(w Receiver) (any, bool) {
			var unset T
			return *field(&w), *field(&w) != unset
		},
	}
}

// setReceiver takes the path below receivers: the tag and the name of its setting.
func (c *Config) setReceiver(path []string, value any) error {
	if len(path) == 0 {
		if isEmpty(value) {
			return nil
		}
		return fmt.Errorf("want tags, and below each the address that is called; the number %v of tasks at once is "+
			"called concurrency", value)
	}
	if !processor.ValidTag(path[0]) {
		return processor.ErrInvalidTag
	}
	if len(path) < 2 {
		return errors.New("want the settings of a receiver below the tag, such as url")
	}
	i := slices.IndexFunc(receiverSettings, func(s receiverSetting) bool { return s.name == path[1] })
	if i < 0 || len(path) > 2 {
		names := make([]string, len(receiverSettings))
		for i, s := range receiverSettings {
			names[i] = s.name
		}
		return unknown(names, path[1])
	}
	w := c.Receivers[path[0]]
	if err := receiverSettings[i].set(&w, value); err != nil {
		return err
	}
	if c.Receivers == nil {
		c.Receivers = make(map[string]Receiver)
	}
	c.Receivers[path[0]] = w
	return nil
}
