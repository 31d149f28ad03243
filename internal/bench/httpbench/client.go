// Package httpbench is the service as it is measured, and the clients that load it. Package bench measures with them.
package httpbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/wire"
)

// Client calls a service. It is safe for concurrent use, and keeps a connection for each concurrent caller.
type Client struct {
	base string
	http *http.Client
}

// mostConns is how many connections stay open: more than clients of any measurement.
const mostConns = 4096

// NewClient takes the URL of the service.
func NewClient(base string) *Client {
	return &Client{base, &http.Client{Transport: &http.Transport{
		MaxIdleConns: mostConns, MaxIdleConnsPerHost: mostConns, DisableCompression: true,
	}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Task is what is saved.
type Task struct {
	Tag  string    `json:"tag"`
	Body any       `json:"body,omitempty"`
	At   time.Time `json:"at"`
}

// Save stores one task.
func (c *Client) Save(ctx context.Context, t Task) error {
	_, err := c.call(ctx, "/v1/tasks", t, &wire.Saved{})
	return err
}

// SaveBatch stores many with one request. It returns an error when one of them is not stored.
func (c *Client) SaveBatch(ctx context.Context, tasks []Task) error {
	var saved wire.BatchSaved
	if _, err := c.call(ctx, "/v1/tasks/batch", tasks, &saved); err != nil {
		return err
	}
	for _, r := range saved.Results {
		if r.Code != "" {
			return fmt.Errorf("a task of a batch was not stored: %s: %s", r.Code, r.Detail)
		}
	}
	return nil
}

// Pop waits for tasks. It also returns the moment when the answer had been read, before it was decoded.
func (c *Client) Pop(ctx context.Context, tag string, most int, wait time.Duration) ([]wire.Popped, time.Time, error) {
	query := url.Values{"max": {strconv.Itoa(most)}, "wait": {wait.String()}}
	var reply wire.PopReply
	at, err := c.call(ctx, "/v1/tags/"+tag+"/pop?"+query.Encode(), nil, &reply)
	return reply.Tasks, at, err
}

// Finish completes tasks. The table shows whether each of them was completed.
func (c *Client) Finish(ctx context.Context, tasks []wire.Popped) error {
	batch := wire.FinishBatch{Tokens: make([]string, len(tasks))}
	for i := range tasks {
		batch.Tokens[i] = tasks[i].Token
	}
	_, err := c.call(ctx, "/v1/tasks/finish", batch, &wire.FinishBatchReply{})
	return err
}

func (c *Client) call(ctx context.Context, path string, request, answer any) (read time.Time, err error) {
	var body io.Reader
	if request != nil {
		text, err := json.Marshal(request)
		if err != nil {
			return read, err
		}
		body = bytes.NewReader(text)
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, body)
	if err != nil {
		return read, err
	}
	if request != nil {
		call.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(call)
	if err != nil {
		return read, err
	}
	text, err := io.ReadAll(response.Body)
	read = time.Now()
	_ = response.Body.Close() // it has been read
	switch {
	case err != nil:
		return read, fmt.Errorf("read the answer of %s: %w", path, err)
	case response.StatusCode >= http.StatusMultipleChoices:
		return read, fmt.Errorf("%s was answered %s: %.300s", path, response.Status, text)
	case response.StatusCode == http.StatusNoContent:
		return read, nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return read, fmt.Errorf("understand the answer of %s: %w", path, err)
	}
	return read, nil
}

// Serve runs the service with its defaults, on a database that has the tables and on a free port of loopback, until ctx
// ends. It calls ready with the address; a call there waits until the service runs. It returns the errors of
// [server.Open] and [server.Service.Run].
func Serve(
	ctx context.Context, dsn string, log *slog.Logger, ready func(url string), options ...server.Option,
) error {
	c := config.Default()
	c.DSN, c.Server.Listen, c.Server.Auth = dsn, "127.0.0.1:0", "none"
	c.Push.Allow = []string{"127.0.0.0/8"}
	s, err := server.Open(ctx, c, log, options...)
	if err != nil {
		return err
	}
	ready(s.URL())
	return s.Run(ctx)
}

// Receive answers calls of the service, on a free port of loopback, while f runs. f gets the URL; note gets the id of
// each call's task, and the moment.
func Receive(ctx context.Context, note func(id int64, at time.Time), f func(url string) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			at := time.Now()
			id, err := strconv.ParseInt(r.Header.Get("Delaytask-Id"), 10, 64)
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			note(id, at)
		})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	err = f("http://" + listener.Addr().String())
	err = errors.Join(err, server.Close())
	if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
