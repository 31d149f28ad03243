package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/go-sql-driver/mysql"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	tcmysql "github.com/testcontainers/testcontainers-go/modules/mysql"
)

// image is the one that docker-compose.yml starts, so a developer's machine often has it.
const image = "mysql:8.4"

// addContainer starts MySQL in Docker when it is still missing. It pulls no image unless asked to. MariaDB needs no
// container: every distribution has a package of it.
func (f *finding) addContainer(ctx context.Context) {
	if len(f.of(MySQL)) > 0 {
		return
	}
	tclog.SetDefault(tclog.NewNoopLogger()) // errors say what is needed
	if os.Getenv("DELAYTASK_TEST_DOCKER") != "1" {
		if err := imageIsLocal(ctx); err != nil {
			f.reasons = append(f.reasons, err.Error()+" (DELAYTASK_TEST_DOCKER=1 pulls it)")
			return
		}
	}
	f.add(startContainer(ctx))
}

func imageIsLocal(ctx context.Context) error {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return errors.New("no Docker here")
	}
	defer provider.Close()
	images, err := provider.ListImages(ctx)
	if err != nil {
		return errors.New("no Docker here")
	}
	if !slices.ContainsFunc(images, func(i testcontainers.ImageInfo) bool { return i.Name == image }) {
		return fmt.Errorf("no image %s in Docker", image)
	}
	return nil
}

// startContainer relies on the reaper of testcontainers when the test process is killed.
func startContainer(ctx context.Context) (*server, error) {
	container, err := tcmysql.Run(ctx, image, tcmysql.WithUsername("root"), tcmysql.WithPassword(""))
	if err != nil {
		err = fmt.Errorf("start %s in Docker: %w", image, err)
		return nil, errors.Join(err, testcontainers.TerminateContainer(container))
	}
	stop := func() error { return testcontainers.TerminateContainer(container, testcontainers.StopTimeout(0)) }
	dsn, err := container.ConnectionString(ctx)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s, err := dial(ctx, cfg, "image "+image)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s.stop = stop
	return s, nil
}
