package fault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
)

// readOnly is what a demoted primary says.
type readOnly struct{ admin *sql.Conn } // one: another may lead to another member

func (f *readOnly) Begin(ctx context.Context, w *World, _ *rand.Rand) (Scar, error) {
	var err error
	if f.admin, err = w.Admin.Conn(ctx); err != nil {
		return Scar{}, err
	}
	_, err = f.admin.ExecContext(ctx, "SET GLOBAL read_only = 1")
	return Scar{}, err
}

func (f *readOnly) End(ctx context.Context, _ *World) error {
	if f.admin == nil {
		return nil
	}
	defer f.admin.Close()
	_, err := f.admin.ExecContext(ctx, "SET GLOBAL read_only = 0")
	return err
}

// few lets the server refuse connections, after all that there were have been killed.
type few struct {
	admin *sql.Conn // which the server would refuse as well
	most  int
}

const fewest = 10 // connections; servers know no less

func (f *few) Begin(ctx context.Context, w *World, _ *rand.Rand) (Scar, error) {
	var err error
	if f.admin, err = w.Admin.Conn(ctx); err != nil {
		return Scar{}, err
	}
	if err := f.admin.QueryRowContext(ctx, "SELECT @@GLOBAL.max_connections").Scan(&f.most); err != nil {
		return Scar{}, err
	}
	if _, err := f.admin.ExecContext(ctx, fmt.Sprintf("SET GLOBAL max_connections = %d", fewest)); err != nil {
		return Scar{}, err
	}
	all, _, err := killConnections(ctx, f.admin, w.User, false)
	return Scar{Saw: fmt.Sprintf("%d connections killed, %d allowed", all, fewest)}, err
}

func (f *few) End(ctx context.Context, _ *World) error {
	if f.admin == nil {
		return nil
	}
	defer f.admin.Close()
	if f.most == 0 {
		return nil
	}
	_, err := f.admin.ExecContext(ctx, fmt.Sprintf("SET GLOBAL max_connections = %d", f.most))
	return err
}

// killAll kills the connections of all processes, on the server.
type killAll struct {
	momentary
	busyOnly bool
}

func (k killAll) Begin(ctx context.Context, w *World, _ *rand.Rand) (Scar, error) {
	conn, err := w.Admin.Conn(ctx)
	if err != nil {
		return Scar{}, errors.Join(ErrNothing, err) // the server is away
	}
	defer conn.Close()
	all, busy, err := killConnections(ctx, conn, w.User, k.busyOnly)
	if busy == 0 || err != nil && k.busyOnly { // beside which a server may go away
		err = errors.Join(ErrNothing, err)
	}
	return Scar{Saw: fmt.Sprintf("%d connections, %d of them busy", all, busy)}, err
}
