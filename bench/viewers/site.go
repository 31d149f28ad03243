// Package viewers is people before open dashboards, and a count of what these ask of a database.
package viewers

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Site is a dashboard as browsers reach it. Each viewer has connections of its own.
type Site struct {
	root  *url.URL
	bytes atomic.Int64

	mu        sync.Mutex // guards what follows
	refreshes Refreshes
}

// Refreshes is what the scripts of open pages have asked for.
type Refreshes struct {
	Took      []time.Duration // each until its answer was read
	Unchanged int             // answered with 304
	PutOff    int             // answered with 204: later
	Failed    int             // answered with an error
	Bytes     int64           // that all viewers received
}

// NewSite takes the URL of the dashboard, which ends in a slash. It returns an error for what is no URL.
func NewSite(root string) (*Site, error) {
	parsed, err := url.Parse(root)
	return &Site{root: parsed}, err
}

// Take returns the refreshes that were answered since the last call.
func (s *Site) Take() Refreshes {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.refreshes
	taken.Bytes = s.bytes.Swap(0)
	s.refreshes = Refreshes{}
	return taken
}

// What a page tells its script.
var (
	everyOf = regexp.MustCompile(`data-every="(\d+)"`)
	liveOf  = regexp.MustCompile(`<div id="live"[^>]*? hx-get="([^"]*)"`)
)

// View opens a page, and calls opened when it is there. It refreshes the page as its script does, until ctx ends. It
// returns an error when the page does not open, and none when a refresh fails.
func (s *Site) View(ctx context.Context, path string, opened func()) error {
	client := &http.Client{Transport: &http.Transport{DialContext: s.dial}}
	defer client.CloseIdleConnections()
	at, err := s.root.Parse(path)
	if err != nil {
		return err
	}
	status, page, err := open(ctx, client, at)
	if err != nil {
		return err
	}
	every, live := everyOf.FindSubmatch(page), liveOf.FindSubmatch(page)
	if status != http.StatusOK || every == nil {
		return fmt.Errorf("the page %s is answered with status %d: %.300s", at, status, page)
	}
	opened()
	if live == nil {
		<-ctx.Done() // it is open, and does not refresh
		return nil
	}
	if at, err = at.Parse(html.UnescapeString(string(live[1]))); err != nil {
		return err
	}
	millis, err := strconv.Atoi(string(every[1]))
	if err != nil {
		return err
	}
	// A refresh that takes longer keeps the next one from beginning.
	ticker := time.NewTicker(time.Duration(millis) * time.Millisecond)
	defer ticker.Stop()
	asked := http.Header{"Hx-Request": {"true"}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		began := time.Now()
		status, answered, _, err := get(ctx, client, at, asked)
		if ctx.Err() != nil {
			return nil
		}
		s.note(status, time.Since(began), err)
		if tag := answered.Get("Etag"); status == http.StatusOK && tag != "" {
			asked.Set("If-None-Match", tag)
		}
	}
}

const openAgain = time.Second

// open reads a whole page. A person tries again while the dashboard asks for that.
func open(ctx context.Context, c *http.Client, at *url.URL) (status int, page []byte, err error) {
	for {
		status, _, page, err = get(ctx, c, at, nil)
		if err != nil || status != http.StatusServiceUnavailable {
			return status, page, err
		}
		select {
		case <-time.After(openAgain):
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
}

func (s *Site) note(status int, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshes.Took = append(s.refreshes.Took, took)
	switch {
	case status == http.StatusNotModified:
		s.refreshes.Unchanged++
	case status == http.StatusNoContent:
		s.refreshes.PutOff++
	case err != nil || status != http.StatusOK:
		s.refreshes.Failed++
	}
}

func get(ctx context.Context, c *http.Client, at *url.URL, header http.Header) (
	status int, answered http.Header, body []byte, err error,
) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return 0, nil, nil, err
	}
	if header != nil {
		r.Header = header.Clone()
	}
	response, err := c.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, response.Header, body, errors.Join(err, response.Body.Close())
}

// dial makes a connection on which what a viewer receives is counted.
func (s *Site) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return countedConn{conn, &s.bytes}, nil
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}
