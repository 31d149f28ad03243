package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/browser"
)

// page is what a GET shows. Its template has the parts "content", with everything, and "live", with what is refreshed.
type page struct {
	template string
	verb     access.Verb // that the user needs for some tag; "": none
	conns    int64       // how many connections a reading takes at once; default 1
	cost     int         // about how many statements a refresh sends; default 2
	show     func(*view) (any, error)
}

// page serves a page, or the live part of it where a script asks for that.
func (d *dashboard) page(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, known := d.who(w, r)
		if !known {
			return
		}
		if isPart(r) {
			d.refresh(w, v, p)
			return
		}
		v.did = v.hearDid(w)
		shown, err := v.read(p, false)
		if to, elsewhere := errors.AsType[canonical](err); elsewhere {
			browser.SeeOther(w, string(to))
			return
		}
		if err != nil {
			d.fail(w, v, err)
			return
		}
		status := http.StatusOK
		if of, known := shown.(interface{ Status() int }); known {
			status = of.Status()
		}
		d.render(w, v, status, p.template, shown)
	})
}

// refresh answers with the live part of a page, or says that it is as it was.
func (d *dashboard) refresh(w http.ResponseWriter, v *view, p page) {
	shown, err := v.read(p, true)
	if _, elsewhere := errors.AsType[canonical](err); elsewhere || errors.Is(err, errLater) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err != nil {
		status := statusOf(err)
		v.logged(status, err)
		http.Error(w, v.Failure(err), status)
		return
	}
	var b bytes.Buffer
	if err := d.templates.part(&b, p.template, "live", v.With(shown)); err != nil {
		d.broken(w, v, err)
		return
	}
	sum := sha256.Sum256(b.Bytes())
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Delaytask-Now", v.Time(v.Now))
	if v.r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	answer(w, http.StatusOK, b.Bytes())
}

// read reads what a page shows, within the bounds of all reads.
func (v *view) read(p page, again bool) (any, error) {
	if p.verb != "" {
		if err := v.allow(p.verb, ""); err != nil {
			return nil, err
		}
	}
	if again {
		return v.readShared(p)
	}
	return v.readNow(p)
}

// readShared reads for a refresh. It may get what another viewer's refresh has read, or errLater.
func (v *view) readShared(p page) (any, error) {
	r := v.reads
	key := fmt.Sprintf("%s\n%s\n%q\n%q", v.Path, v.r.URL.RawQuery, v.Caller.Tags(), v.Caller.Verbs())
	r.mu.Lock()
	last := r.kept[key]
	if last == nil || time.Since(last.at) > keptFor {
		if !r.turns.AllowN(time.Now(), max(p.cost, 2)) {
			r.mu.Unlock()
			return nil, errLater
		}
		last = &reading{at: time.Now(), now: v.Now, done: make(chan struct{})}
		makeRoom(r.kept, func(old *reading) bool { return time.Since(old.at) > keptFor })
		r.kept[key] = last
		r.mu.Unlock()
		shared := *v
		shared.r = v.r.WithContext(context.WithoutCancel(v.r.Context())) // others wait for it too
		func() {
			defer close(last.done)
			last.err = errSlow // unless it ends
			last.shown, last.err = shared.readNow(p)
		}()
		return last.shown, last.err
	}
	r.mu.Unlock()
	select {
	case <-last.done:
		v.Now = last.now
		return last.shown, last.err
	case <-v.r.Context().Done():
		return nil, context.Cause(v.r.Context())
	}
}

// readNow reads once there is room.
func (v *view) readNow(p page) (any, error) {
	ctx, cancel := within(v.r.Context())
	defer cancel()
	conns := max(p.conns, 1)
	if err := v.reads.room.Acquire(ctx, conns); err != nil {
		return nil, context.Cause(ctx)
	}
	defer v.reads.room.Release(conns)
	read := *v
	read.r = v.r.WithContext(ctx)
	shown, err := p.show(&read)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && !isPart(v.r) {
		v.server.learn(ctx, v.store)
	}
	return shown, err
}
