package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/config"
	"github.com/delaytask/delaytask/internal/service"
)

type serviceEvent struct {
	URL string `json:"url"`
}

// serviceChild is what `delaytask serve` is, with loopback allowed to be called.
func serviceChild(ctx context.Context, o order, t *child.Teller) error {
	c := config.Default()
	c.DSN, c.Migrate, c.Server.Listen, c.Push.Allow = o.DSN, true, "127.0.0.1:0", []string{"127.0.0.1/32"}
	s, err := service.Open(ctx, c, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	t.Tell(serviceEvent{s.URL()})
	return s.Run(ctx)
}

// api is the URL of a service.
type api string

// post sends JSON and reads JSON. An answer without a body leaves the reply as it is.
func (a api) post(ctx context.Context, path string, body, reply any) (err error) {
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(a)+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s answered %d: %s", path, res.StatusCode, text)
	case len(text) == 0 || reply == nil:
		return nil
	}
	return json.Unmarshal(text, reply)
}
