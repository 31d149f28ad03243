package dbtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// image is the one that docker-compose.yml starts, so a developer's machine often has it.
const image = "mysql:8.4"

func imageIsLocal(ctx context.Context) error {
	if err := exec.CommandContext(ctx, "docker", "version").Run(); err != nil {
		return errors.New("no Docker here")
	}
	if err := exec.CommandContext(ctx, "docker", "image", "inspect", image).Run(); err != nil {
		return fmt.Errorf("no image %s in Docker", image)
	}
	return nil
}

// startContainer runs the command container, which ends with its standard input, and so with this process.
func startContainer(ctx context.Context) (*server, error) {
	var said bytes.Buffer
	command := exec.Command("go", "run", "github.com/delaytask/delaytask/internal/testkit/dbtest/container", image)
	command.Stderr = &said
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s in Docker: %w", image, err)
	}
	stop := func() error { return errors.Join(input.Close(), command.Wait()) }
	dsn, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s %w", strings.TrimSpace(said.String()), errors.Join(err, stop()))
	}
	cfg, err := mysql.ParseDSN(strings.TrimSpace(dsn))
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
