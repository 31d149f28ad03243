package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/compat"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/server/encrypted"
	"github.com/delaytask/delaytask/internal/server/push"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// serveTags serves the tags that call addresses: the tag http, the receivers of the settings, and those that register
// themselves.
func (p *parts) serveTags() error {
	if err := p.register(access.HTTPTag, p.client.HTTP()); err != nil {
		return err
	}
	reserved := []string{access.HTTPTag}
	for tag, receiver := range p.cfg.Receivers {
		static, err := staticOf(tag, receiver)
		if err != nil {
			return fmt.Errorf("receivers.%s: %w", tag, err)
		}
		calls, err := static.Processor(p.client)
		if err != nil {
			return fmt.Errorf("receivers.%s: %w", tag, err)
		}
		if err := p.register(tag, calls, static.Options()...); err != nil {
			return fmt.Errorf("receivers.%s: %w", tag, err)
		}
		reserved = append(reserved, tag)
	}
	c := push.Config{
		Store: p.store, Scheduler: p.scheduler, Client: p.client, Log: p.log, Reserved: reserved,
		Options: func(tag string) []processor.RegisterOption { return p.options(tag) },
	}
	if p.cfg.Secret != "" {
		box, err := encrypted.New(p.cfg.Secret)
		if err != nil {
			return err
		}
		c.Secrets = box
	}
	registry, err := push.New(c)
	p.receivers = registry
	return err
}

// register serves a tag in this process. The tag's own settings come last and win.
func (p *parts) register(tag string, with processor.Processor, options ...processor.RegisterOption) error {
	return p.scheduler.Register(tag, with, slices.Concat(options, p.options(tag))...)
}

// options are the options of a tag: its jobs of the legacy protocols run again after their TTR when a call fails.
func (p *parts) options(tag string) []processor.RegisterOption {
	own := p.cfg.Tags[tag]
	return append(tagOptions(own), processor.Use(compat.RetryAfterTTR(cmp.Or(own.TTR, p.cfg.TTR))))
}

func staticOf(tag string, w config.Receiver) (push.Static, error) {
	static := push.Static{Tag: tag, URL: w.URL, Method: w.Method, Concurrency: w.Concurrency}
	for _, text := range w.Secrets {
		secret, err := webhook.ParseSecret(text)
		if err != nil {
			return static, err
		}
		static.Secrets = append(static.Secrets, secret)
	}
	if w.PassRule != "" {
		rule, err := webhook.ParseRule([]byte(w.PassRule))
		if err != nil {
			return static, err
		}
		static.Rule = rule
	}
	return static, nil
}

// check applies the rules of a tag to a task that is saved: a task of the tag http names an address, which must be
// allowed.
func (p *parts) check(tag string, body []byte) error {
	if tag != access.HTTPTag {
		return nil
	}
	call, err := webhook.ParseRequest(body)
	if err == nil {
		err = p.client.CheckURL(call.URL)
	}
	if err == nil {
		return nil
	}
	code := wire.CodeInvalidBody
	switch {
	case errors.Is(err, webhook.ErrBlockedURL):
		code = wire.CodeBlockedAddress
	case errors.Is(err, webhook.ErrInvalidURL):
		code = wire.CodeInvalidAddress
	}
	return wire.NewProblem(http.StatusBadRequest, code, err.Error())
}
