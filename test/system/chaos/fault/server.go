package fault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func crash(_ context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
	if err := w.Server.Kill(); err != nil {
		return Residue{}, nil, err
	}
	return Residue{}, w.Server.Start, nil
}

// hang lets the server take connections and answer nothing.
func hang(_ context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
	if err := w.Server.Freeze(); err != nil {
		return Residue{}, nil, err
	}
	return Residue{}, func(context.Context) error { return w.Server.Thaw() }, nil
}

// readOnly makes the server refuse writes, as a demoted primary does.
func readOnly(ctx context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
	admin, err := w.Admin.Conn(ctx) // one: another may lead to another member
	if err != nil {
		return Residue{}, nil, err
	}
	_, err = admin.ExecContext(ctx, "SET GLOBAL read_only = 1")
	return Residue{}, func(ctx context.Context) error {
		defer admin.Close()
		_, err := admin.ExecContext(ctx, "SET GLOBAL read_only = 0")
		return err
	}, err
}

const fewest = 10 // connections; servers allow no lower limit

// few lets the server refuse connections, after it has killed all.
func few(ctx context.Context, w *World, _ *rand.Rand) (residue Residue, end End, err error) {
	admin, err := w.Admin.Conn(ctx) // a later one the server would refuse
	if err != nil {
		return residue, nil, err
	}
	set := func(ctx context.Context, most int) error {
		_, err := admin.ExecContext(ctx, fmt.Sprintf("SET GLOBAL max_connections = %d", most))
		return err
	}
	var most int
	if err := admin.QueryRowContext(ctx, "SELECT @@GLOBAL.max_connections").Scan(&most); err != nil {
		return residue, nil, errors.Join(err, admin.Close())
	}
	end = func(ctx context.Context) error {
		defer admin.Close()
		return set(ctx, most)
	}
	if err := set(ctx, fewest); err != nil {
		return residue, end, err
	}
	all, _, err := killConnections(ctx, admin, w.User, false)
	return Residue{Saw: fmt.Sprintf("%d connections killed, %d allowed", all, fewest)}, end, err
}

// killAll kills the connections of all processes, on the server.
func killAll(busyOnly bool) Begin {
	return func(ctx context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
		conn, err := w.Admin.Conn(ctx)
		if err != nil {
			return Residue{}, nil, errors.Join(ErrNothing, err) // the server is away
		}
		defer conn.Close()
		all, busy, err := killConnections(ctx, conn, w.User, busyOnly)
		if busy == 0 || err != nil && busyOnly { // beside which a server may go away
			err = errors.Join(ErrNothing, err)
		}
		return Residue{Saw: fmt.Sprintf("%d connections, %d of them busy", all, busy)}, nil, err
	}
}

// killConnections kills connections of the user, and returns how many, and how many of them had a statement under way.
func killConnections(ctx context.Context, admin *sql.Conn, user string, busyOnly bool) (all, busy int, err error) {
	found, err := connections(ctx, admin, user)
	if err != nil {
		return 0, 0, err
	}
	for id, isBusy := range found {
		if busyOnly && !isBusy {
			continue
		}
		_, err := admin.ExecContext(ctx, fmt.Sprintf("KILL %d", id))
		const gone = 1094
		if refused, is := errors.AsType[*mysql.MySQLError](err); is && refused.Number == gone {
			continue
		}
		if err != nil {
			return all, busy, err
		}
		all++
		if isBusy {
			busy++
		}
	}
	return all, busy, nil
}

func connections(ctx context.Context, admin *sql.Conn, user string) (map[int64]bool, error) {
	const query = "SELECT id, command <> 'Sleep' FROM information_schema.processlist WHERE user = ?"
	rows, err := admin.QueryContext(ctx, query, user)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[int64]bool{}
	for rows.Next() {
		var id int64
		var isBusy bool
		if err := rows.Scan(&id, &isBusy); err != nil {
			return nil, err
		}
		found[id] = isBusy
	}
	return found, rows.Err()
}

// The ballast is more than the space that the server allocates at a time, so the server asks for more space at once.
const (
	fill      = "INSERT INTO chaos_ballast (content) VALUES (REPEAT('x', 65536))"
	fillTimes = 1000
	empty     = "TRUNCATE chaos_ballast"
)

// fullDisk fills the server's own disk, if it has one, until the server reports it.
func fullDisk(ctx context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
	if w.Disk == "" {
		return Residue{}, nil, ErrNothing
	}
	path := filepath.Join(w.Disk, "full")
	end := func(ctx context.Context) error { return emptyDisk(ctx, w, path) }
	file, err := os.Create(path)
	if err != nil {
		return Residue{}, end, err
	}
	defer file.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return Residue{}, end, err
	}
	for range fillTimes {
		if _, err := w.Admin.ExecContext(ctx, fill); err != nil {
			return Residue{Saw: err.Error()}, end, nil
		}
	}
	return Residue{}, end, ErrNothing
}

func emptyDisk(ctx context.Context, w *World, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := w.Admin.ExecContext(ctx, empty); err == nil {
		return nil
	}
	if err := w.Server.Start(ctx); err != nil { // some servers give up when they have no space
		return err
	}
	_, err := w.Admin.ExecContext(ctx, empty)
	return err
}

// comesBack is how long a member may take by itself. Then it is killed and started anew, as an operator would do.
const comesBack = time.Minute

// catchesUp is how long a member may then take to apply what it has missed, on a busy machine.
const catchesUp = 5 * time.Minute

// mostRounds bounds how often members are started anew. One that joins may let another hang.
const mostRounds = 3

// whole returns when all members are there, so that the next fault may take one away: two must remain at any time.
func (w *World) whole(ctx context.Context) error {
	var away error
	for range mostRounds {
		err := w.Members.Await(ctx, comesBack)
		if err == nil {
			return nil
		}
		away = errors.Join(away, err)
		for _, member := range w.Members.Alone(ctx) {
			w.Say("member %d is started anew: %v", member, err)
			if err := errors.Join(w.Members.Kill(member), w.Members.Rejoin(member)); err != nil {
				away = errors.Join(away, err) // it may only be slow
			}
		}
	}
	if err := w.Members.Await(ctx, catchesUp); err != nil {
		return errors.Join(away, err)
	}
	return nil
}

// Heal returns when no member of a cluster hangs or is away.
func (w *World) Heal(ctx context.Context) error {
	if w.Members == nil || !wait(ctx, dbtest.Hangs) { // a commit that waits for shorter is not known to hang
		return nil
	}
	return w.whole(ctx)
}

// degraded reports whether a member of a cluster is away, by a fault or because it was slow and the others expelled it.
// Then statements of the injector may fail.
func (w *World) degraded(ctx context.Context) bool {
	return w.Members != nil && w.Members.Whole(context.WithoutCancel(ctx)) != nil
}

// onMember kills or freezes a member of a cluster, the primary if there is one, and brings it back. During a long
// freeze the others go on without it.
func onMember(hurt, heal func(*dbtest.Cluster, int) error) Begin {
	return func(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error) {
		if err := w.Members.Whole(ctx); err != nil {
			return Residue{}, w.whole, errors.Join(ErrNothing, err) // one is away by itself
		}
		var member int
		if w.Primary != nil {
			member = w.Primary()
		} else {
			member = r.IntN(w.Members.Size())
		}
		if err := hurt(w.Members, member); err != nil {
			return Residue{}, w.whole, err
		}
		return Residue{Saw: fmt.Sprint("member ", member)}, func(ctx context.Context) error {
			away := heal(w.Members, member)
			if err := w.whole(ctx); err != nil {
				return errors.Join(away, err)
			}
			return nil
		}, nil
	}
}
