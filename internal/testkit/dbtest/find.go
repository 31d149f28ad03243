package dbtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// findTimeout covers the slowest case, a container whose image has to be pulled.
const findTimeout = 3 * time.Minute

// finding holds the servers that were found, and the reasons why others were not.
type finding struct {
	servers []*server
	reasons []string
}

func (f *finding) of(kind Kind) []*server {
	var servers []*server
	for _, s := range f.servers {
		if s.kind == kind {
			servers = append(servers, s)
		}
	}
	return servers
}

// why lists the reasons for the kinds that are missing.
func (f *finding) why() string { return strings.Join(f.reasons, "; ") }

func (f *finding) add(s *server, err error) {
	if err != nil {
		f.reasons = append(f.reasons, err.Error())
		return
	}
	f.servers = append(f.servers, s)
}

var (
	once  sync.Once
	state finding // written in once, and by finish after the last test
)

func found() *finding {
	once.Do(func() {
		if sqliteAlone() {
			state.reasons = append(state.reasons, named+" asks for SQLite alone")
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), findTimeout)
		defer cancel()
		state.addNamed(ctx)
		state.addPrivate(ctx)
		state.addContainer(ctx)
	})
	return &state
}

// named is the variable that names servers.
const named = "DELAYTASK_TEST_DSN"

// sqliteAlone reports whether the tests have to leave servers alone, also those that are installed.
func sqliteAlone() bool { return os.Getenv(named) == string(SQLite) }

// files is where databases of SQLite are made.
var files = &server{kind: SQLite}

func serversOf(kind Kind) []*server {
	if kind == SQLite {
		return []*server{files}
	}
	return found().of(kind)
}

// addNamed adds the servers that the user named.
func (f *finding) addNamed(ctx context.Context) {
	list := os.Getenv(named)
	if list == "" {
		f.reasons = append(f.reasons, named+" is not set")
		return
	}
	for database := range strings.SplitSeq(list, ",") {
		var members []*mysql.Config
		for dsn := range strings.SplitSeq(database, "+") {
			cfg, err := mysql.ParseDSN(strings.TrimSpace(dsn))
			if err != nil {
				f.reasons = append(f.reasons, named+" holds what is not a go-sql-driver DSN")
				return
			}
			members = append(members, cfg)
		}
		connect := func() (*server, error) { return dial(ctx, members[0], named) }
		if len(members) > 1 {
			connect = func() (*server, error) { return dialCluster(ctx, members, named) }
		}
		s, err := connect()
		if err != nil {
			err = fmt.Errorf("%s at %s: %w", named, members[0].Addr, err)
		}
		f.add(s, err)
	}
}

// addPrivate starts the binaries of this machine for the kinds that are missing.
func (f *finding) addPrivate(ctx context.Context) {
	binaries := serverBinaries(ctx)
	if len(binaries) == 0 {
		f.reasons = append(f.reasons, "no mariadbd or mysqld on this machine")
	}
	for _, b := range binaries {
		if len(f.of(b.kind)) == 0 {
			f.add(startPrivate(ctx, b))
		}
	}
}

// startPrivate runs the binary with data of its own and returns when it answers.
func startPrivate(ctx context.Context, b binary) (*server, error) {
	s, err := startSupervised(ctx, b.kind, b.supervisor, "", nil)
	if err != nil {
		return nil, fmt.Errorf("%s does not start: %w", b.path, err)
	}
	s.server.origin = "private server of the tests"
	return s.server, nil
}

// addContainer starts MySQL in Docker when it is still missing. It pulls no image unless asked to. MariaDB needs no
// container: every distribution has a package of it.
func (f *finding) addContainer(ctx context.Context) {
	if len(f.of(MySQL)) > 0 {
		return
	}
	if os.Getenv("DELAYTASK_TEST_DOCKER") != "1" {
		if err := imageIsLocal(ctx); err != nil {
			f.reasons = append(f.reasons, err.Error()+" (DELAYTASK_TEST_DOCKER=1 pulls it)")
			return
		}
	}
	f.add(startContainer(ctx))
}
