package scheduler

import (
	"errors"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// ErrInvalidConfig is returned by Open and New when a field of [Config] is out of range.
var ErrInvalidConfig = errors.New("delaytask: invalid config")

// ErrUnknownDriver is returned by Open and New for a SQLite database when the program does not import package sqlite,
// which links the driver.
var ErrUnknownDriver = sqlstore.ErrUnknownDriver

// ErrReplica is returned by Open and New when the server applies the changes of another one, and can be written to.
// This process would run the tasks of that server a second time. Connect to that server, or see [Config.OnReplica].
// Where the account may not ask for the state of the replication, heartbeats of nodes on the other server tell. They
// are told from the left-overs of a failover within 15 s, for which the call waits.
var ErrReplica = sqlstore.ErrReplica

// ErrReadOnly is returned by Start and Register of a scheduler that only reads: see [Config.ReadOnly]. It is the cause
// of the errors of its methods that write.
var ErrReadOnly = store.ErrReadOnly

// ErrNotReady is returned by Ready, with the reason.
var ErrNotReady = core.ErrNotReady
