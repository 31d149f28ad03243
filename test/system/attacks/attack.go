package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// attackerVariable makes this program the attacker, in a process of its own. It holds what the attacker knows.
const attackerVariable = "ATTACKS_OF"

// attacker sends what attacks are made of. It has tokens with few rights, and addresses of this machine.
type attacker struct {
	address           string
	save, pop, cookie string
}

// An attack is what some callers do, over and over.
type attack struct {
	name   string
	begins func(ctx context.Context, a attacker, all *sync.WaitGroup)
}

var attacks = []attack{
	{"batches", batches}, {"saves", saves}, {"headers", headers}, {"bodies", bodies}, {"forms", forms}, {"pops", pops},
	{"connections", connections}, {"logins", logins}, {"tags", tags}, {"lines", lines},
}

// beAttacker runs the named attacks until the context ends.
func beAttacker(ctx context.Context, names []string) error {
	known := strings.Split(os.Getenv(attackerVariable), "\n")
	a := attacker{address: known[0], save: known[1], pop: known[2], cookie: known[3]}
	var all sync.WaitGroup
	for _, of := range attacks {
		if slices.Contains(names, of.name) {
			of.begins(ctx, a, &all)
		}
	}
	all.Wait()
	return nil
}

// batches are of 32 MiB: one task of headers, many tasks with headers, and the largest batch that is taken.
func batches(ctx context.Context, a attacker, all *sync.WaitGroup) {
	whole := fmt.Appendf(nil, "[%s]", taskOf(31<<20))
	one := taskOf(15 << 10)
	others := bytes.Repeat(append([]byte(","), one...), 32<<20/(len(one)+1)-1)
	many := slices.Concat([]byte("["), one, others, []byte("]"))
	large := fmt.Appendf(nil, `,{"tag":"weak.a","delay":"1h","body":%q}`, strings.Repeat("b", 1<<20-10))
	most := slices.Concat([]byte("["), one, bytes.Repeat(append([]byte(","), one...), 34), bytes.Repeat(large, 31),
		[]byte("]"))
	repeat(ctx, all, 8, func(int) {
		body := [][]byte{whole, many, most}[rand.IntN(3)]
		a.send(ctx, "127.0.0.11", post("/v1/tasks/batch", len(body), asJSON(a.save)...), body, 30*time.Second)
	})
}

// saves are refused: each has 95,000 headers, and half of them no token.
func saves(ctx context.Context, a attacker, all *sync.WaitGroup) {
	body := taskOf(900 << 10)
	repeat(ctx, all, 100, func(n int) {
		token, from := a.save, "127.0.0.12"
		if n%2 == 0 {
			token, from = "", "127.0.1.12"
		}
		a.send(ctx, from, post("/v1/tasks", len(body), asJSON(token)...), body, 30*time.Second)
	})
}

// headers are of saves that are taken.
func headers(ctx context.Context, a attacker, all *sync.WaitGroup) {
	body := taskOf(15 << 10)
	repeat(ctx, all, 500, func(int) {
		a.send(ctx, "127.0.0.20", post("/v1/tasks", len(body), asJSON(a.save)...), body, 30*time.Second)
	})
}

// bodies lack their last byte.
func bodies(ctx context.Context, a attacker, all *sync.WaitGroup) {
	body := taskOf(1 << 20)[:1<<20-2]
	repeat(ctx, all, 1500, func(int) {
		a.send(ctx, "127.0.0.13", post("/v1/tasks", len(body)+1, asJSON(a.save)...), body, 40*time.Second)
		pause(ctx, 200*time.Millisecond)
	})
}

// forms of the dashboard lack their last byte.
func forms(ctx context.Context, a attacker, all *sync.WaitGroup) {
	body := bytes.Repeat([]byte("a=1&"), 1<<20)[:4<<20-1]
	paths := []string{"/ui/login", "/ui/tasks/1/cancel", "/ui/tasks/1/retry", "/ui/tags/weak.a/pause"}
	repeat(ctx, all, 200, func(n int) {
		head := post(paths[n%len(paths)], 4<<20, asForm("Cookie", a.cookie)...)
		a.send(ctx, "127.0.0.14", head, body, 40*time.Second)
		pause(ctx, 50*time.Millisecond)
	})
}

// pops are answered with up to 16 tasks of 1 MiB, and not read.
func pops(ctx context.Context, a attacker, all *sync.WaitGroup) {
	repeat(ctx, all, 40, func(int) {
		c := a.dial(ctx, "127.0.0.15")
		if c == nil {
			return
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		head := post("/v1/tags/pop.big/pop?max=16&wait=20s&ttr=5s", 0, "Authorization", "Bearer "+a.pop)
		_, _ = io.WriteString(c, head)
		pause(ctx, 8*time.Second)
	})
}

// connections are idle, or send a byte of a header each second.
func connections(ctx context.Context, a attacker, all *sync.WaitGroup) {
	repeat(ctx, all, 12_000, func(n int) {
		pause(ctx, rand.N(time.Second))
		c := a.dial(ctx, fmt.Sprintf("127.0.2.%d", 1+n%50))
		if c == nil {
			return
		}
		defer c.Close()
		if n < 2000 {
			go trickle(ctx, c, []byte(strings.Repeat("x", 1000)), 1, time.Second)
		}
		_, _ = c.Read(make([]byte, 1))
	})
}

// logins have wrong tokens, from many addresses and from one, and made-up cookies.
func logins(ctx context.Context, a attacker, all *sync.WaitGroup) {
	var tries atomic.Int64
	login := func(from string) {
		body := []byte("token=" + url.QueryEscape(fmt.Sprintf("dt_%d%020d", tries.Add(1), rand.Int64())))
		a.send(ctx, from, post("/ui/login", len(body), asForm()...), body, 20*time.Second)
	}
	repeat(ctx, all, 16, func(int) { login(fmt.Sprintf("127.0.3.%d", 1+tries.Load()%250)) })
	repeat(ctx, all, 8, func(int) { login("127.0.0.17") })
	repeat(ctx, all, 24, func(int) {
		n := tries.Add(1) % 7000
		head := fmt.Sprintf("GET /ui/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+
			"Cookie: __Host-delaytask=%043d\r\n\r\n", n)
		a.send(ctx, fmt.Sprintf("127.0.4.%d", 1+n%250), head, nil, 20*time.Second)
	})
}

// tags are 10,000, and no task has one of them.
func tags(ctx context.Context, a attacker, all *sync.WaitGroup) {
	var tries atomic.Int64
	callers := &http.Client{Transport: &http.Transport{DialContext: dialer("127.0.0.18").DialContext,
		MaxIdleConnsPerHost: 100}, Timeout: 30 * time.Second}
	repeat(ctx, all, 64, func(int) {
		path := fmt.Sprintf("http://%s/v1/tags/pop.f%d/pop", a.address, tries.Add(1)%10_000)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, nil)
		if err != nil {
			return
		}
		r.Header.Set("Authorization", "Bearer "+a.pop)
		if answer, err := callers.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
	})
}

// lines are headers of requests: 64 KiB at once, and 15 KiB slowly.
func lines(ctx context.Context, a attacker, all *sync.WaitGroup) {
	const get = "GET / HTTP/1.1\r\nHost: localhost\r\n"
	large := []byte(get)
	for n := 0; len(large) < 64<<10; n++ {
		large = fmt.Appendf(large, "%x:\r\n", n)
	}
	repeat(ctx, all, 64, func(int) { a.send(ctx, "127.0.0.19", "", large, 20*time.Second) })
	repeat(ctx, all, 2000, func(n int) {
		pause(ctx, rand.N(time.Second))
		if c := a.dial(ctx, fmt.Sprintf("127.0.5.%d", 1+n%20)); c != nil {
			trickle(ctx, c, large[:15<<10], 512, 200*time.Millisecond)
			_ = c.Close()
		}
	})
}

// taskOf returns a task with so many bytes of short headers.
func taskOf(size int) []byte {
	task := []byte(`{"tag":"weak.a","delay":"1h","headers":{"z":""`)
	for n, begin := 0, len(task); len(task)-begin < size; n++ {
		task = fmt.Appendf(task, `,"%x":""`, n)
	}
	return append(task, "}}"...)
}

func asJSON(token string) []string {
	if token == "" {
		return []string{"Content-Type", "application/json"}
	}
	return []string{"Content-Type", "application/json", "Authorization", "Bearer " + token}
}

func asForm(header ...string) []string {
	return append(header, "Content-Type", "application/x-www-form-urlencoded", "Origin", "http://localhost")
}

// post returns the head of a request.
func post(path string, length int, header ...string) string {
	head := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + strconv.Itoa(length) + "\r\n"
	for n := 0; n < len(header); n += 2 {
		head += header[n] + ": " + header[n+1] + "\r\n"
	}
	return head + "\r\n"
}

func dialer(from string) *net.Dialer {
	return &net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
}

// dial returns a connection that is closed with the context, or nil after a moment.
func (a attacker) dial(ctx context.Context, from string) net.Conn {
	c, err := dialer(from).DialContext(ctx, "tcp", a.address)
	if err != nil {
		pause(ctx, 100*time.Millisecond)
		return nil
	}
	context.AfterFunc(ctx, func() { _ = c.Close() })
	return c
}

// send sends a request on a connection of its own, and reads the begin of the answer.
func (a attacker) send(ctx context.Context, from, head string, body []byte, patience time.Duration) {
	c := a.dial(ctx, from)
	if c == nil {
		return
	}
	defer c.Close()
	go func() {
		_, _ = io.WriteString(c, head)
		_, _ = c.Write(body)
	}()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, _ = io.ReadFull(c, make([]byte, 12))
}

// trickle sends some bytes at a time.
func trickle(ctx context.Context, c net.Conn, what []byte, bytes int, every time.Duration) {
	for ; len(what) > bytes; what = what[bytes:] {
		if _, err := c.Write(what[:bytes]); err != nil || !pause(ctx, every) {
			return
		}
	}
}

// repeat does something n times at once, over and over.
func repeat(ctx context.Context, all *sync.WaitGroup, n int, do func(int)) {
	for i := range n {
		all.Go(func() {
			for pause(ctx, time.Millisecond) {
				do(i)
			}
		})
	}
}

// pause reports whether the context has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
