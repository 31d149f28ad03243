package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// slowing makes fsync take longer while a file exists in the server's working folder, its data.
const slowing = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static int slowly(int fd, const char *name) {
  if (access("slow-fsync", F_OK) == 0) usleep(50000);
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}
int fsync(int fd) { return slowly(fd, "fsync"); }
int fdatasync(int fd) { return slowly(fd, "fdatasync"); }
`

// mysqlHome is the folder that test/servers/mysql runs MySQL in.
func mysqlHome() string {
	if home := os.Getenv("DELAYTASK_MYSQL_HOME"); home != "" {
		return home
	}
	return "/var/cache/delaytask-mysql"
}

// slowFsync returns the environment of a server whose fsync can be made slow, and what removes the library. Every disk
// write of a commit takes 50 ms then.
func slowFsync(ctx context.Context, kind dbtest.Kind) (env []string, clean func() error, err error) {
	root := ""
	if kind == dbtest.MySQL {
		root = mysqlHome()
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "/tmp"), "neighbours-")
	if err != nil {
		return nil, func() error { return nil }, err
	}
	clean = func() error { return os.RemoveAll(dir) }
	library := filepath.Join(dir, "slow.so")
	source := filepath.Join(dir, "slow.c")
	if err := os.WriteFile(source, []byte(slowing), 0o600); err != nil {
		return nil, clean, err
	}
	out, err := exec.CommandContext(ctx, "cc", "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput()
	if err != nil {
		return nil, clean, fmt.Errorf("%w: %s", err, out)
	}
	inside, err := filepath.Rel(filepath.Join(root, "/"), library)
	return []string{"LD_PRELOAD=/" + inside}, clean, err
}

// slowFile is the file that makes the server's fsync slow.
func slowFile(ctx context.Context, kind dbtest.Kind, dsn string) (string, error) {
	pool, err := sql.Open("mysql", dsn)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	var data string
	if err := pool.QueryRowContext(ctx, "SELECT @@datadir").Scan(&data); err != nil {
		return "", err
	}
	if kind == dbtest.MySQL {
		data = filepath.Join(mysqlHome(), data)
	}
	if _, err := os.Stat(data); err != nil {
		return "", errors.Join(errors.New("the server's data is not where it says"), err)
	}
	return filepath.Join(data, "slow-fsync"), nil
}
