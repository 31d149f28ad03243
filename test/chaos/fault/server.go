package fault

import (
	"context"
	"math/rand/v2"

	"github.com/delaytask/delaytask/test/chaos/role"
)

// crash kills the server and starts it again on its data.
type crash struct{ away bool }

func (c *crash) Begin(_ context.Context, w *World, _ *rand.Rand) (Scar, error) {
	if err := w.Server.Kill(); err != nil {
		return Scar{}, err
	}
	c.away = true
	return Scar{}, nil
}

func (c *crash) End(ctx context.Context, w *World) error {
	if !c.away {
		return nil
	}
	return w.Server.Start(ctx)
}

// hang lets the server take connections and answer nothing.
type hang struct{ frozen bool }

func (h *hang) Begin(_ context.Context, w *World, _ *rand.Rand) (Scar, error) {
	if err := w.Server.Freeze(); err != nil {
		return Scar{}, err
	}
	h.frozen = true
	return Scar{}, nil
}

func (h *hang) End(_ context.Context, w *World) error {
	if !h.frozen {
		return nil
	}
	return w.Server.Thaw()
}

// away parts all processes from the server.
type away struct{}

func (away) Begin(ctx context.Context, w *World, _ *rand.Rand) (Scar, error) {
	for _, name := range []string{role.Worker, role.Saver} {
		for _, s := range w.Fleet.Of(name) {
			s.Proxy.Cut()
		}
	}
	return Scar{}, nil
}

func (away) End(_ context.Context, w *World) error {
	for _, name := range []string{role.Worker, role.Saver} {
		for _, s := range w.Fleet.Of(name) {
			s.Proxy.Heal()
		}
	}
	return nil
}
