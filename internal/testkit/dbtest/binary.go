package dbtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// binary is a database server that is installed on this machine.
type binary struct {
	kind Kind
	path string
}

// serverBinaries looks where packages put servers, which is often not in the PATH of an ordinary user. Two names of one
// file count once.
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

// superviseBinary waits for the server that it has started. The exit code tells whether the server was alive until it
// was killed.
const superviseBinary = `
begin() { "$@" & server=$!; }
alive() { kill -0 $server && ! grep -q '^State:.Z' /proc/$server/status; }
crash() { kill -KILL $server; wait $server; [ $? = 137 ]; }
` + superviseLoop

func (b binary) supervisor(ctx context.Context, dir string, port int) (cmd *exec.Cmd, socket string, err error) {
	if err := b.initialise(ctx, dir); err != nil {
		return nil, "", err
	}
	args := append([]string{"-c", superviseBinary, "supervisor", dir}, b.serve(dir, port)...)
	return exec.Command("/bin/sh", args...), b.socket(dir), nil
}

// serve returns the command line of the server.
func (b binary) serve(dir string, port int) []string {
	args := append([]string{b.path}, b.common(dir)...)
	return append(args, "--bind-address=127.0.0.1", "--port="+strconv.Itoa(port), "--socket="+b.socket(dir),
		"--pid-file="+filepath.Join(dir, "pid"), "--secure-file-priv="+dir, "--max-connections=500",
		"--loose-mysqlx=OFF")
}

func (b binary) socket(dir string) string { return filepath.Join(dir, "s") }

// initialise makes the data folder, with a root user without a password.
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

// common returns the arguments of every call of the server. Its temporary files stay in its own folder: when MariaDB
// starts, it deletes the files of other servers that share one.
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
