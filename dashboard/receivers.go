package dashboard

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// receiversPage is the registered addresses that are called with tasks.
type receiversPage struct {
	Receivers []receiver
	Live      int
	Left      int // that match and are not among Receivers
	App, Tag  string
	Breakers  bool // Down is known
	Denied    bool // the account may not read them
	Hidden    bool // some are left out because the user does not see all their tags
	Removed   bool // the action before has removed one
}

// receiver is a registered address. It never holds the secret.
type receiver struct {
	ID               int64
	App              string
	Address          string // without what is often a secret
	Tags             []string
	Signed           bool
	TTL              time.Duration
	Created, Expires time.Time
	Live             bool
	Down             bool
	Again            time.Time // while Down: when a call tries it
}

// Heartbeat is when it last said that it is alive.
func (r receiver) Heartbeat() time.Time { return r.Expires.Add(-r.TTL) }

const (
	mostReceivers = 200
	mostExpired   = 100
)

// receiverStore returns the store of the database, which keeps receivers beside tasks. Other stores have none.
func (v *view) receiverStore() (*sqlstore.Store, error) {
	s, ok := store.Under(v.store).(*sqlstore.Store)
	if !ok {
		return nil, errNoReceiver
	}
	return s, nil
}

// receivers shows those that are alive, and some that have expired lately.
func (v *view) receivers() (any, error) {
	query := v.r.URL.Query()
	shown := receiversPage{
		App: query.Get("app"), Tag: query.Get("tag"), Removed: v.did.Has("removed"), Breakers: v.o.Down != nil,
	}
	s, err := v.receiverStore()
	if err != nil {
		return shown, nil
	}
	live, reading, err := s.Receivers(v.r.Context())
	if err != nil {
		return receiversDenied(shown, err)
	}
	expired, err := sqlstore.Inspect(s).SilentReceivers(v.r.Context(), mostExpired)
	if err != nil {
		return receiversDenied(shown, err)
	}
	for _, w := range slices.Concat(expired, live) {
		one, sees := v.receiverOf(w, reading.Time)
		switch {
		case !sees:
			shown.Hidden = true
			continue
		case shown.App != "" && w.App != shown.App, shown.Tag != "" && !slices.Contains(w.Tags, shown.Tag):
			continue
		}
		if one.Live {
			shown.Live++
		}
		shown.Receivers = append(shown.Receivers, one)
	}
	slices.SortStableFunc(shown.Receivers, func(a, b receiver) int { // those that need attention come first
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.App, b.App), cmp.Compare(a.Address, b.Address))
	})
	shown.Receivers, shown.Left = firstOf(shown.Receivers, mostReceivers)
	return shown, nil
}

func (r receiver) rank() int {
	switch {
	case r.Down && r.Live:
		return 0
	case !r.Live:
		return 1
	default:
		return 2
	}
}

// receiversDenied is the page where the account may not read the table, which a program without the service need not.
func receiversDenied(shown receiversPage, err error) (any, error) {
	if sqlstore.IsDenied(err) {
		shown.Denied = true
		return shown, nil
	}
	return nil, err
}

// receiverOf is a receiver as the user sees it, if the user may.
func (v *view) receiverOf(w row.Receiver, now row.Time) (one receiver, sees bool) {
	one = receiver{
		ID: w.ID, App: w.App, Tags: w.Tags,
		Signed: w.Secret != nil, TTL: w.TTL, Created: w.Created.Std(), Expires: w.Expires.Std(), Live: w.Expires > now,
	}
	one.Address, sees = v.look().Receiver(w.Address, w.Tags)
	if v.o.Down != nil {
		var again time.Time
		again, one.Down = v.o.Down(w.Address)
		one.Again = v.Now.Add(time.Until(again)) // by the database's clock, as all times of a page
	}
	return one, sees
}

type receiverPage struct {
	Receiver receiver
	Breakers bool
	Remove   bool // the user may
}

func (v *view) receiver() (any, error) {
	w, err := v.findReceiver(v.r.Context())
	if err != nil {
		return nil, err
	}
	one, sees := v.receiverOf(w, row.At(v.Now))
	if !sees {
		return nil, errNoReceiver
	}
	return receiverPage{
		Receiver: one, Breakers: v.o.Down != nil, Remove: v.by().SomeTag(access.Register) &&
			v.by().MayAll(access.Register, w.Tags),
	}, nil
}

// findReceiver reads the receiver that the path names, expired or not.
func (v *view) findReceiver(ctx context.Context) (w row.Receiver, err error) {
	s, err := v.receiverStore()
	if err != nil {
		return w, err
	}
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil {
		return w, errNoReceiver
	}
	w, there, err := s.Receiver(ctx, id)
	if err == nil && !there {
		err = errNoReceiver
	}
	return w, err
}

// removeReceiver ends the calls to an address.
func (v *view) removeReceiver() (result, error) {
	var found row.Receiver
	err := v.operator.DeleteReceiver(v.r.Context(), v.by(), errNoReceiver,
		func(ctx context.Context) (_ operate.Receiver, err error) {
			found, err = v.findReceiver(ctx)
			tags := append([]string{}, found.Tags...)
			return operate.Receiver{App: found.App, Address: found.Address, Tags: tags}, err
		}, func(ctx context.Context) error {
			s, err := v.receiverStore()
			if err != nil {
				return err
			}
			there, err := s.DeleteReceiver(ctx, found.ID)
			if err == nil && !there {
				err = errNoReceiver
			}
			return err
		})
	return result{to: "receivers?removed=1", did: true}, err
}
