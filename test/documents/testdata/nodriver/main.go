// Nodriver opens a SQLite file without the driver.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/delaytask/delaytask"
)

func main() {
	_, err := delaytask.Open(context.Background(), "sqlite:nodriver.db", delaytask.Config{})
	if _, statErr := os.Stat("nodriver.db"); !errors.Is(statErr, os.ErrNotExist) {
		log.Fatal("it has made a file")
	}
	if errors.Is(err, delaytask.ErrUnknownDriver) {
		log.Fatal(err)
	}
}
