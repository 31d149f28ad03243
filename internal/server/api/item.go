package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/wire"
)

type saveInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"The same request is served once in 24 h"`
	RawBody        []byte `contentType:"application/json"`
	Body           wire.Save
}

// itemOf translates a save.
func itemOf(s *wire.Save) (delaytask.Item, error) {
	options, err := optionsOf(s)
	if err != nil {
		return delaytask.Item{}, err
	}
	body, err := bodyOf(s.Body, s.BodyText)
	if err != nil {
		return delaytask.Item{}, err
	}
	item := delaytask.Item{Tag: s.Tag, Body: body, Options: options}
	if s.Delay != nil {
		item.Delay = s.Delay.Std()
	}
	return item, nil
}

// bodyOf returns the body that a request sets, nil for none.
func bodyOf(body json.RawMessage, text *string) (json.RawMessage, error) {
	if text != nil {
		if len(body) > 0 {
			return nil, fmt.Errorf("%w: body and body_text exclude each other; send one of them",
				delaytask.ErrInvalidBody)
		}
		body = append(json.RawMessage{}, *text...)
	}
	return body, nil
}

func optionsOf(s *wire.Save) ([]delaytask.Option, error) {
	if err := operate.CheckHeaders(s.Headers); err != nil {
		return nil, err
	}
	options := []delaytask.Option{
		delaytask.WithKey(s.Key), delaytask.WithTTR(s.TTR.Std()), delaytask.WithMaxAttempts(s.MaxAttempts),
		delaytask.WithPriority(s.Priority), delaytask.WithHeaders(s.Headers),
	}
	if err := checkApp(s.App); err != nil {
		return nil, err
	}
	options = append(options, delaytask.WithApp(s.App))
	if s.ID != 0 {
		options = append(options, delaytask.WithID(int64(s.ID)))
	}
	if s.NoAttemptLimit {
		options = append(options, delaytask.WithNoAttemptLimit())
	}
	if s.At != nil {
		if s.Delay != nil {
			return nil, fmt.Errorf("%w: delay and at exclude each other", delaytask.ErrInvalidOption)
		}
		options = append(options, delaytask.WithTime(s.At.Std()))
	}
	if s.OnConflict != "" {
		options = append(options, delaytask.WithOnConflict(s.OnConflict))
	}
	options = append(options, delaytask.WithMaxWait(s.MaxWait.Std()))
	late, err := latenessOption(s)
	if err != nil {
		return nil, err
	}
	return append(options, late...), nil
}

func latenessOption(s *wire.Save) ([]delaytask.Option, error) {
	if s.MaxLateness == 0 && s.LatePolicy == "" {
		return nil, nil
	}
	policy := delaytask.LateSkip
	if s.LatePolicy != "" {
		known := false
		if policy, known = wire.ParseLatePolicy(s.LatePolicy); !known {
			return nil, fmt.Errorf("%w: late_policy is %.20q, want run, skip or fail", delaytask.ErrInvalidOption,
				s.LatePolicy)
		}
	}
	if s.MaxLateness < wire.Duration(time.Millisecond) {
		return nil, fmt.Errorf("%w: max_lateness must be at least 1 ms where there is a late_policy",
			delaytask.ErrInvalidOption)
	}
	return []delaytask.Option{delaytask.WithMaxLateness(s.MaxLateness.Std(), policy)}, nil
}
