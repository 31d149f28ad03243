// Command container starts MySQL in Docker for the tests, prints its DSN, and ends it when its standard input ends.
//
// It is a program of its own, so that no test imports the container library: an application's go mod tidy looks at the
// tests of the packages that it imports, and would take in the modules of Docker.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/mysql"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run relies on the reaper of testcontainers when the process is killed.
func run(ctx context.Context, image string) (err error) {
	tclog.SetDefault(tclog.NewNoopLogger()) // errors say what is needed
	container, err := mysql.Run(ctx, image, mysql.WithUsername("root"), mysql.WithPassword(""))
	defer func() {
		err = errors.Join(err, testcontainers.TerminateContainer(container, testcontainers.StopTimeout(0)))
	}()
	if err != nil {
		return fmt.Errorf("start %s in Docker: %w", image, err)
	}
	dsn, err := container.ConnectionString(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, dsn); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
