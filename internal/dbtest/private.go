package dbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// binary is a database server that is installed on this machine.
type binary struct {
	kind Kind
	path string
}

// serverBinaries looks where packages put servers, which is often not in the PATH of an ordinary user. Two names of one file
// count once.
func serverBinaries(ctx context.Context) []binary {
	folders := append(filepath.SplitList(os.Getenv("PATH")),
		"/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/mysql/bin", "/opt/homebrew/bin")
	var found []binary
	seen := map[string]bool{}
	for _, name := range []string{"mariadbd", "mysqld"} {
		for _, folder := range folders {
			path, err := filepath.EvalSymlinks(filepath.Join(folder, name))
			if err != nil || seen[path] {
				continue
			}
			seen[path] = true
			version, err := exec.CommandContext(ctx, path, "--no-defaults", "--version").Output()
			if err != nil {
				continue // not for this machine, or not to be run by this user
			}
			found = append(found, binary{kindOf(string(version)), path})
		}
	}
	return found
}

// keeper runs a server for as long as its standard input stays open. That end is held by the test process alone, so the
// server and its folder go away with it however it dies, SIGKILL included. When the server ends by itself, so does the keeper.
// An interrupt from the terminal is left to the tests.
const keeper = `
trap '' INT TERM HUP
dir=$1
shift
exec 3<&0
"$@" </dev/null >&2 3<&- &
server=$!
{ while read -r _; do :; done; kill -KILL $server; } <&3 &
watcher=$!
wait $server
rm -rf "$dir"
kill -KILL $watcher
`

// start runs the binary with data of its own and returns when it answers. Durability is left as it is by default: what tests
// see is then what users get.
func (b binary) start(ctx context.Context) (*server, error) {
	dir, err := os.MkdirTemp("", "delaytask-db-")
	if err != nil {
		return nil, err
	}
	s, err := b.startIn(ctx, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not start: %w", b.path, err), os.RemoveAll(dir))
	}
	return s, nil
}

func (b binary) startIn(ctx context.Context, dir string) (*server, error) {
	if err := b.initialise(ctx, dir); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "server.log")) // readable here after the keeper has removed it
	if err != nil {
		return nil, err
	}
	defer log.Close()
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-c", keeper, "keeper", dir}, b.serve(dir, port)...)
	cmd := exec.Command("/bin/sh", args...) // not bound to ctx, which ends with the search
	cmd.Stderr = log
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() error {
		_ = hold.Close() // the keeper may have gone already
		_ = cmd.Wait()   // its exit code tells how the watcher ended
		return os.RemoveAll(dir)
	}

	// The socket is surely ours; the port could have been taken by somebody else in the meantime.
	if err := awaitSocket(ctx, b.socket(dir)); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, reason(logged(log))), stop())
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s, err := dial(ctx, cfg, "private server of the tests")
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s.stop = stop
	return s, nil
}

// serve is the command line of the server itself.
func (b binary) serve(dir string, port int) []string {
	args := append([]string{b.path}, b.common(dir)...)
	return append(args, "--bind-address=127.0.0.1", "--port="+strconv.Itoa(port), "--socket="+b.socket(dir),
		"--pid-file="+filepath.Join(dir, "pid"), "--secure-file-priv="+dir, "--max-connections=500",
		"--loose-mysqlx=OFF")
}

func (b binary) socket(dir string) string { return filepath.Join(dir, "s") }

// initialise makes the data folder, with a root user that needs no password.
func (b binary) initialise(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, b.path, append(b.common(dir), "--initialize-insecure")...)
	if b.kind == MariaDB {
		script, err := installScript(b.path)
		if err != nil {
			return err
		}
		args := append(b.common(dir), "--auth-root-authentication-method=normal", "--skip-test-db")
		cmd = exec.CommandContext(ctx, script, args...)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the data folder: %w: %s", err, reason(out))
	}
	return nil
}

// common is what every call of the server needs. Its temporary files stay in its own folder: MariaDB, when it starts, deletes
// those of any other server that shares one.
func (b binary) common(dir string) []string {
	args := []string{"--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + dir}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // otherwise the server refuses to run as root
	}
	return args
}

func installScript(server string) (string, error) {
	prefix := filepath.Dir(filepath.Dir(server))
	for _, name := range []string{"mariadb-install-db", "mysql_install_db"} {
		for _, folder := range []string{"bin", "scripts"} {
			path := filepath.Join(prefix, folder, name)
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s has no mariadb-install-db beside it", server)
}

func awaitSocket(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "unix", socket
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		_, err := dial(ctx, cfg, "")
		if err == nil {
			return nil
		}
		if _, gone := os.Stat(filepath.Dir(socket)); gone != nil {
			return errors.New("it ended")
		}
		select {
		case <-ctx.Done():
			return err
		case <-poll.C:
		}
	}
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func logged(file *os.File) []byte {
	text, _ := io.ReadAll(io.NewSectionReader(file, 0, 1<<20))
	return text
}

// reason picks the line that explains a failure: the last that is marked as an error, else the last.
func reason(log []byte) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.Contains(line, "ERROR") && !strings.Contains(line, "Aborting") {
			return line
		}
	}
	return lines[len(lines)-1]
}
