//go:build linux && !race

package service

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// mostResident is what the service takes at most, whatever callers with few rights send.
const mostResident = 300 << 20

// resident returns the peak of the memory that the server has had since it was last asked.
func (s *server) resident() int64 {
	s.TB.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	servertest.OK(s.TB, err)
	kib, err := strconv.ParseInt(string(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)[1]), 10, 64)
	servertest.OK(s.TB, err)
	servertest.OK(s.TB, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.PID()), []byte("5"), 0))
	return kib << 10
}

// flood sends the same bytes over many connections, as fast as the server takes them, and reads no answer.
func (s *server) flood(number int, head string, body []byte) (open connections) {
	s.TB.Helper()
	var sends sync.WaitGroup
	for range number {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		servertest.OK(s.TB, err)
		open = append(open, conn)
		_ = conn.SetWriteDeadline(time.Now().Add(3 * time.Second)) // the server may take no more
		sends.Go(func() { _, _ = (&net.Buffers{[]byte(head), body}).WriteTo(conn) })
	}
	sends.Wait()
	return open
}

type connections []net.Conn

// await waits until the server has begun to answer each, or has given up.
func (c connections) await() {
	for _, conn := range c {
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, _ = conn.Read(make([]byte, 1))
	}
}

func (c connections) end() {
	for _, conn := range c {
		_ = conn.Close()
	}
}

// headerLines are short lines of headers, in so many bytes.
func headerLines(size int) []byte {
	var all bytes.Buffer
	for n := 0; all.Len() < size; n++ {
		fmt.Fprintf(&all, "%x:\r\n", n)
	}
	return all.Bytes()
}

// namesOf is JSON members that take so many bytes.
func namesOf(size int) []byte {
	var all bytes.Buffer
	for n := 0; all.Len() < size; n++ {
		fmt.Fprintf(&all, `"%x":"",`, n)
	}
	return append(all.Bytes(), `"z":""`...)
}

// manyTags saves a task of each of so many thousand tags.
func (s *server) manyTags(thousands int, token []string) {
	for n := range thousands {
		var tasks []string
		for i := range 1000 {
			tasks = append(tasks, fmt.Sprintf(`{"tag":"customer.%02d.%03d","delay":"1h"}`, n, i))
		}
		s.Want(200, "", "POST", "/v1/tasks/batch", "["+strings.Join(tasks, ",")+"]", token...)
	}
}

func TestCallersWithFewRightsDoNotFillTheMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 600 MiB")
	}
	db := dbtest.New(t, dbtest.SQLite)
	s := serve(t, db, "DELAYTASK_SERVER_AUTH=token")
	weak, reader := token(t, db, "weak", "weak.*", "save,work"), token(t, db, "reader", "weak.*", "read")
	other, viewer := token(t, db, "other", "*", "save,work"), token(t, db, "viewer", "*", "observe,read")
	s.becomes(200, "GET", "/v1/tasks?tag=weak.a", reader...)
	s.becomes(204, "POST", "/v1/tags/other/pop", other...)
	post := func(path string, length int, header ...string) string {
		text := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + strconv.Itoa(length) + "\r\n"
		for n := 0; n < len(header); n += 2 {
			text += header[n] + ": " + header[n+1] + "\r\n"
		}
		return text + "\r\n"
	}
	json := append([]string{"Content-Type", "application/json"}, weak...)
	f := func(name string, number int, head string, body []byte) {
		t.Helper()
		began := time.Now()
		open := s.flood(number, head, body)
		defer open.end()
		if strings.HasPrefix(head, "GET /v1/") {
			open.await()
		}
		sent := time.Since(began)
		s.Want(200, "", "GET", "/readyz", "")
		ready := time.Since(began) - sent
		s.Want(201, "", "POST", "/v1/tasks", `{"tag":"other"}`, other...)
		s.Want(200, "", "POST", "/v1/tags/other/pop?wait=50s", "", other...)
		most := s.resident()
		if t.Logf("%s: %d MiB; sent after %v, ready in %v, all in %v", name, most>>20, sent, ready,
			time.Since(began)); most > mostResident {
			t.Errorf("%s took %d MiB", name, most>>20)
		}
	}
	const form = "application/x-www-form-urlencoded"
	headers := fmt.Appendf(nil, `[{"tag":"weak.a","delay":"1h","headers":{%s}}]`, namesOf(31<<20))
	f("batches of headers", 8, post("/v1/tasks/batch", len(headers), json...), headers)
	task := fmt.Sprintf(`{"tag":"weak.a","delay":"1h","headers":{%s}},`, namesOf(15<<10))
	tasks := []byte("[" + strings.TrimSuffix(strings.Repeat(task, 31<<20/len(task)), ",") + "]")
	f("batches of tasks with headers", 8, post("/v1/tasks/batch", len(tasks), json...), tasks)
	one := headers[1 : 1+(1<<20)]
	f("saves of headers", 100, post("/v1/tasks", len(one), json...), one)
	f("saves of headers that are taken", 500, post("/v1/tasks", len(task)-1, json...), []byte(task[:len(task)-1]))
	f("saves of headers without the right", 100,
		post("/v1/tasks", len(one), append([]string{"Content-Type", "application/json"}, reader...)...), one)
	names := fmt.Appendf(nil, `[{"tag":"weak.a","delay":"1h","body":{%s}}]`, namesOf(31<<20))
	f("batches of names", 8, post("/v1/tasks/batch", len(names), json...), names)
	f("stalled saves", 1500, post("/v1/tasks", 1<<20-1, json...), one[:1<<20-2])
	f("stalled commands", 200, post("/compat/topics", 4<<20, json...), headers[:4<<20-1])
	in := s.Want(303, "", "POST", "/ui/login", "token="+strings.TrimPrefix(weak[1], "Bearer "),
		"Content-Type", form, "Origin", s.URL)
	cookie, _, _ := strings.Cut(in.Header.Get("Set-Cookie"), ";")
	f("stalled forms", 200, post("/ui/tasks/1/cancel", 4<<20, "Content-Type", form, "Origin",
		"http://localhost", "Cookie", cookie), headers[:4<<20-1])
	f("stalled headers of strangers", 4000, "GET / HTTP/1.1\r\nHost: localhost\r\n", headerLines(18<<10))
	f("stalled headers of waiting pops", 4000, strings.TrimSuffix(post("/v1/tags/weak.none/pop?wait=50s", 0, weak...),
		"\r\n"), append(headerLines(14<<10), "\r\n"...))
	for range 12 {
		s.Want(200, "", "POST", "/v1/tasks/batch", `[`+strings.TrimSuffix(strings.Repeat(
			`{"tag":"weak.pop","body":"`+strings.Repeat("b", 1<<20-10)+`"},`, 16), ",")+`]`, weak...)
	}
	f("pops of all", 4, post("/v1/tags/weak.pop/pop?max=1000&wait=50s", 0, weak...), nil)
	s.manyTags(20, other)
	for _, path := range []string{"overview?limit=10000", "forecast?span=30d"} {
		f(path+" that is not read", 60, "GET /v1/"+path+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: "+
			viewer[1]+"\r\n\r\n", nil)
	}
	f("pops that are not read", 40, post("/v1/tags/weak.pop/pop?max=16&wait=50s", 0, weak...), nil)
}
